//! Drives the producer of one cluster with nginx's events.
//!
//! The rule everywhere: change the producer, let go of it, then act. No borrow is held while nginx
//! is called in a way that may come back here, above all while requests are answered.

mod outcome;
mod recovery;
mod socket;
mod tokens;

use core::cell::{Cell, RefCell, UnsafeCell};
use core::ffi::c_void;
use core::ptr;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use kafka::{
    AppendError, Event, Input, MILLISECOND, Micros, Output, Producer, QueryId, Record, SECOND,
    Severity,
};
use nginx_sys::{NGX_LOG_CRIT, NGX_LOG_DEBUG, ngx_event_t, ngx_log_t, ngx_uint_t};

use crate::conf::ClusterConf;
use crate::event::connection::Connection;
use crate::event::{self, Posted, Timer, monotonic};
use crate::guard;
use crate::http::{Failure, Waiter};
use crate::log::LimitedLog;
use crate::resolve::{Asker, Resolver};
use outcome::Lost;
use tokens::{DETACHED, Tokens};

/// nginx has no hook for the begin of a graceful exit. While records are held, and only then, a
/// driver looks this often.
const EXIT_CHECK: Micros = 500 * MILLISECOND;

pub struct Driver {
    this: Weak<Driver>,
    conf: &'static ClusterConf,
    /// `worker_shutdown_timeout`.
    shutdown_timeout: Option<Micros>,
    log: LimitedLog,
    /// For connections; nginx writes to a log's fields.
    nginx_log: Box<UnsafeCell<ngx_log_t>>,
    resolver: Rc<Resolver>,
    /// One for all connections of the worker: none is in use for longer than a read.
    read_buffer: Rc<RefCell<Box<[u8]>>>,
    core: RefCell<Core>,
    connections: RefCell<Vec<Rc<Connection>>>,
    /// What has happened and is still to be told to the producer.
    inbox: RefCell<Vec<Input<'static>>>,
    /// Requests whose last record has been completed.
    finished: RefCell<Vec<Rc<Waiter>>>,
    turn: Posted,
    timer: Timer,
    /// A panic has left the producer in a state not to be trusted.
    broken: Cell<bool>,
    /// The worker exits: until when it delivers.
    deliver_until: Cell<Option<Micros>>,
    lost: RefCell<Lost>,
}

/// What is changed together.
struct Core {
    producer: Producer,
    tokens: Tokens,
}

impl Core {
    fn new(conf: &ClusterConf) -> Self {
        Self { producer: Producer::new(conf.producer.clone(), seed()), tokens: Tokens::default() }
    }
}

impl Driver {
    pub fn new(
        conf: &'static ClusterConf,
        shutdown_timeout: Option<Micros>,
        resolver: Rc<Resolver>,
        read_buffer: Rc<RefCell<Box<[u8]>>>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|this: &Weak<Self>| {
            let owner: *const c_void = this.as_ptr().cast();
            Self {
                this: this.clone(),
                conf,
                shutdown_timeout,
                log: LimitedLog::new(&conf.name),
                nginx_log: Box::new(UnsafeCell::new(quiet_log())),
                resolver,
                read_buffer,
                core: RefCell::new(Core::new(conf)),
                connections: RefCell::default(),
                inbox: RefCell::default(),
                finished: RefCell::default(),
                turn: Posted::new(on_turn, owner),
                timer: Timer::new(on_timer, owner),
                broken: Cell::new(false),
                deliver_until: Cell::new(None),
                lost: RefCell::default(),
            }
        })
    }

    pub fn max_message_size(&self) -> usize {
        self.conf.producer.max_message_size
    }

    /// Hands records over, all or none; sets their tokens. With a waiter, it is completed later and
    /// answered from an event of ours, never from in here: the caller may be in the middle of the
    /// request's own handlers.
    pub fn append(
        &self,
        records: &mut [Record<'_>],
        waiter: Option<&Rc<Waiter>>,
    ) -> Result<(), Failure> {
        self.turn.post();
        if self.broken.get() {
            return Err(Failure::internal());
        }
        let now = monotonic();
        let appended = guard("the producer", || {
            let core = &mut *self.core.borrow_mut();
            // Nobody waits to hear later that the topic does not exist, so the latest word counts,
            // also when it is old.
            let missing = |record: &Record<'_>| core.producer.topic_is_missing(now, record.topic);
            if waiter.is_none()
                && let Some(index) = records.iter().position(missing)
            {
                return Err(AppendError::UnknownTopic { index });
            }
            for (index, record) in records.iter_mut().enumerate() {
                record.token = waiter.map_or(DETACHED, |waiter| core.tokens.add(waiter, index));
            }
            let appended = core.producer.append(now, records);
            if appended.is_err() {
                records.iter().for_each(|record| drop(core.tokens.take(record.token)));
            }
            appended
        });
        match appended {
            Some(Ok(())) => {
                if let Some(waiter) = waiter {
                    waiter.wait(records.iter().map(|record| record.token));
                }
                Ok(())
            }
            Some(Err(error)) => Err(self.refused(now, error, records)),
            None => {
                self.broken.set(true);
                Err(Failure::internal())
            }
        }
    }

    fn refused(&self, now: Micros, error: AppendError, records: &[Record<'_>]) -> Failure {
        let topic = records.first().map_or("", |record| record.topic);
        let message = error.to_string();
        let failure = Failure::from(error);
        if !failure.is_own() {
            self.log.report(
                now,
                failure.name,
                Severity::Error,
                records.len() as u64,
                format_args!("record for topic \"{topic}\" not accepted: {message}"),
            );
        }
        failure
    }

    /// The clients of these records have left: drops what is still unsent.
    pub fn cancel(&self, tokens: &[u64]) {
        self.turn.post();
        if self.broken.get() {
            return;
        }
        let now = monotonic();
        let cancelled = guard("the producer", || {
            let core = &mut *self.core.borrow_mut();
            tokens.iter().for_each(|token| core.producer.cancel(now, *token));
        });
        self.broken.set(cancelled.is_none());
    }

    /// How long a client should wait that was refused.
    pub fn retry_after_seconds(&self) -> u64 {
        let wait = self.core.borrow().producer.retry_after(monotonic());
        wait.div_ceil(SECOND).max(1)
    }

    /// One entry from nginx's event loop: `feed` tells the producer what has happened.
    fn run(&self, feed: impl FnOnce(&mut Producer, Micros)) {
        let worked = guard("the producer", || {
            if !self.broken.get() {
                feed(&mut self.core.borrow_mut().producer, monotonic());
                self.work();
            }
        });
        if worked.is_none() || self.broken.get() {
            self.recover();
        }
        self.answer_finished();
    }

    /// Does all that the producer asks for, and sets the timer.
    fn work(&self) {
        let mut wishes = Vec::new();
        loop {
            let now = monotonic();
            {
                let core = &mut *self.core.borrow_mut();
                for input in self.inbox.take() {
                    core.producer.handle(now, input);
                }
                self.check_exit(now, &mut core.producer);
                while let Some(output) = core.producer.poll(now) {
                    match output {
                        Output::Completed(completion) => {
                            self.completed(now, &mut core.tokens, &completion);
                        }
                        Output::Event(event) => self.report(now, &event),
                        wish => wishes.push(wish),
                    }
                }
            }
            for wish in wishes.drain(..) {
                self.fulfil(wish);
            }
            if self.inbox.borrow().is_empty() {
                return self.set_timer(now);
            }
        }
    }

    fn fulfil(&self, wish: Output) {
        match wish {
            Output::Connect { conn, addr, .. } => self.connect(conn, &addr),
            Output::Close { conn } => drop(self.take_connection(conn)),
            Output::Transmit { conn } => {
                // Written once per turn of the event loop, after all requests of this turn.
                if let Some(connection) = self.connection(conn) {
                    connection.post_write();
                }
            }
            Output::Resolve { query, host, port } => {
                let asker = self.this.clone() as Weak<dyn Asker>;
                // Soon enough to be told as the reason when records expire.
                let timeout = self.conf.producer.delivery_timeout / 2;
                let answer = self.resolver.resolve(query, &host, port, timeout, asker);
                if let Some(result) = answer {
                    self.inbox.borrow_mut().push(Input::Resolved { query, result });
                }
            }
            Output::Completed(_) | Output::Event(_) => {}
        }
    }

    fn set_timer(&self, now: Micros) {
        let core = self.core.borrow();
        let holds_records = core.producer.outstanding() > 0;
        let exit_check = match self.deliver_until.get() {
            _ if !holds_records => None,
            None => Some(now + EXIT_CHECK),
            deadline => deadline,
        };
        let deadlines = [core.producer.next_timer(), self.log.next_flush(), exit_check];
        // Only a timer that cannot be cancelled keeps an exiting worker from leaving.
        self.timer.set(deadlines.into_iter().flatten().min(), !holds_records);
    }

    /// A worker that is to exit accepts what its last requests bring, delivers for a while, and
    /// then gives up.
    fn check_exit(&self, now: Micros, producer: &mut Producer) {
        // SAFETY: nginx runs on one thread.
        if unsafe { nginx_sys::ngx_exiting } == 0 {
            return;
        }
        let Some(deadline) = self.deliver_until.get() else {
            let time = self.conf.producer.delivery_timeout;
            let time = self.shutdown_timeout.map_or(time, |timeout| timeout.min(time));
            self.deliver_until.set(Some(now.saturating_add(time)));
            return;
        };
        if now >= deadline {
            producer.close(now, now);
        }
    }

    fn report(&self, now: Micros, event: &Event) {
        self.log.report(now, event.kind, event.severity, 1, format_args!("{}", event.message));
    }

    /// With nothing borrowed: see [`Waiter::answer`].
    fn answer_finished(&self) {
        while !self.finished.borrow().is_empty() {
            for waiter in self.finished.take() {
                guard("an answer", || waiter.answer(|| self.retry_after_seconds()));
            }
        }
    }

    /// The worker exits, now.
    pub fn exit(&self) {
        let now = monotonic();
        guard("exit", || {
            self.deliver_until.set(Some(now));
            let core = &mut *self.core.borrow_mut();
            core.producer.abort(now);
            while let Some(output) = core.producer.poll(now) {
                if let Output::Completed(completion) = output {
                    self.completed(now, &mut core.tokens, &completion);
                }
            }
        });
        self.connections.take();
        self.finished.take();
        self.log.flush_all(now);
        self.lost.take().report(&self.conf.name);
    }
}

impl Asker for Driver {
    fn resolved(&self, query: QueryId, result: Result<Vec<SocketAddr>, String>) {
        self.inbox.borrow_mut().push(Input::Resolved { query, result });
        self.turn.post();
    }
}

unsafe extern "C" fn on_turn(event: *mut ngx_event_t) {
    guard("the driver", || {
        // SAFETY: the owner of this event is a driver, which outlives its events.
        let driver = unsafe { &*event::owner(event).cast::<Driver>() };
        driver.run(|_, _| {});
    });
}

unsafe extern "C" fn on_timer(event: *mut ngx_event_t) {
    guard("the driver", || {
        // SAFETY: as above.
        let driver = unsafe { &*event::owner(event).cast::<Driver>() };
        driver.log.flush(monotonic());
        driver.run(|producer, now| producer.handle(now, Input::Timer));
    });
}

/// A copy, so that the numbers of our connections do not get into the cycle's log. What nginx's
/// functions would log at each failed attempt is left to the producer's events, which are limited;
/// nginx's alarms stay, and its debug log does.
fn quiet_log() -> ngx_log_t {
    // SAFETY: the cycle's log is alive; the structure is plain.
    let mut log = unsafe { *crate::log::cycle_log() };
    log.handler = None;
    log.data = ptr::null_mut();
    if log.log_level < NGX_LOG_DEBUG as ngx_uint_t {
        log.log_level = log.log_level.min(NGX_LOG_CRIT as ngx_uint_t);
    }
    log
}

/// Workers must differ: forked, they share whatever was drawn before.
fn seed() -> u64 {
    let mut seed = [0u8; 8];
    // SAFETY: the buffer is valid for writing.
    let n = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    if n == seed.len() as isize {
        u64::from_ne_bytes(seed)
    } else {
        monotonic() ^ u64::from(std::process::id()).rotate_left(32)
    }
}
