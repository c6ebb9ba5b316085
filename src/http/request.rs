//! The link between a request that waits and the records it made.

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use core::ptr;
use std::rc::Rc;

use convert::answer::{self as json, RecordAnswer};
use kafka::{Completion, Delivery, Micros};
use nginx_sys::{
    NGX_HTTP_INTERNAL_SERVER_ERROR, ngx_http_cleanup_add, ngx_http_finalize_request,
    ngx_http_request_t, ngx_http_run_posted_requests, ngx_int_t, ngx_pool_cleanup_add,
};
use ngx::http::HttpModule;

use super::Failure;
use super::answer::{Answer, Header};
use crate::conf::LocationConf;
use crate::{KafkaModule, guard, worker};

/// Exists once per request and location with `kafka_pass`. Two of nginx's cleanup lists know it:
/// the request's, which runs when the request dies and may no longer be touched; and the pool's,
/// which runs after the access log was written and its variables were read.
pub struct Waiter {
    /// Null once the request has been answered or has died.
    r: Cell<*mut ngx_http_request_t>,
    /// Only compared: internal redirects clear the module context, subrequests share the pool.
    identity: *const ngx_http_request_t,
    conf: &'static LocationConf,
    started: Micros,
    /// Records that have not been completed.
    waiting: Cell<usize>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    records: Vec<Record>,
    /// Of the request as a whole.
    failure: Option<Failure>,
}

struct Record {
    /// In the request's pool or in the configuration.
    topic: *const str,
    token: u64,
    partition: Option<i32>,
    latency: Option<Micros>,
    outcome: Outcome,
}

#[derive(Debug, Clone, Default)]
pub enum Outcome {
    /// Not handed to the producer.
    #[default]
    None,
    Waiting,
    /// Nobody waits for it.
    Queued,
    Written {
        offset: Option<i64>,
    },
    Failed(Failure),
}

impl Waiter {
    /// `None`: out of memory.
    ///
    /// # Safety
    /// `r` is a live request in the location of `conf`.
    pub unsafe fn attach(
        r: *mut ngx_http_request_t,
        conf: &'static LocationConf,
        now: Micros,
    ) -> Option<Rc<Self>> {
        // SAFETY: `r` is live; each list holds the pointer as long as the pool lives, and the
        // pool's holds the count of one that goes with it.
        unsafe {
            let of_pool = ngx_pool_cleanup_add((*r).pool, 0);
            let of_request = ngx_http_cleanup_add(r, 0);
            if of_pool.is_null() || of_request.is_null() {
                return None;
            }
            let this = Rc::new(Self {
                r: Cell::new(r),
                identity: r,
                conf,
                started: now,
                waiting: Cell::new(0),
                state: RefCell::default(),
            });
            let data: *mut c_void = Rc::into_raw(this.clone()).cast_mut().cast();
            (*of_pool).data = data;
            (*of_pool).handler = Some(on_pool_end);
            (*of_request).data = data;
            (*of_request).handler = Some(on_request_end);
            *(*r).ctx.add(KafkaModule::module().ctx_index) = data;
            Some(this)
        }
    }

    /// The one of a request; the latest where an internal redirect led to another location.
    ///
    /// # Safety
    /// `r` is a live request; the answer must not outlive its pool.
    pub unsafe fn find<'a>(r: *mut ngx_http_request_t) -> Option<&'a Self> {
        // SAFETY: as the caller promises. What `attach` left in the lists is valid as long as the
        // pool.
        unsafe {
            let ctx: *const Self = (*(*r).ctx.add(KafkaModule::module().ctx_index)).cast();
            if !ctx.is_null() {
                return Some(&*ctx);
            }
            let mut cleanup = (*(*r).pool).cleanup;
            while let Some(entry) = cleanup.as_ref() {
                let ours = entry.handler.is_some_and(|handler| {
                    ptr::fn_addr_eq(handler, on_pool_end as unsafe extern "C" fn(*mut c_void))
                });
                if ours
                    && let Some(waiter) = entry.data.cast::<Self>().as_ref()
                    && ptr::eq(waiter.identity, r)
                {
                    return Some(waiter);
                }
                cleanup = entry.next;
            }
            None
        }
    }

    /// Notes the topics.
    ///
    /// # Safety
    /// They live as long as the request's pool.
    pub unsafe fn set_topics<'a>(&self, topics: impl Iterator<Item = &'a str>) {
        self.state.borrow_mut().records = topics
            .map(|topic| Record {
                topic,
                token: 0,
                partition: None,
                latency: None,
                outcome: Outcome::None,
            })
            .collect();
    }

    /// The producer has accepted the records and knows them by these tokens.
    pub fn wait(&self, tokens: impl Iterator<Item = u64>) {
        let mut state = self.state.borrow_mut();
        self.waiting.set(state.records.len());
        for (record, token) in state.records.iter_mut().zip(tokens) {
            record.token = token;
            record.outcome = Outcome::Waiting;
        }
    }

    /// The producer has accepted the records, and nobody will wait for them.
    pub fn queued(&self) {
        for record in &mut self.state.borrow_mut().records {
            record.outcome = Outcome::Queued;
        }
    }

    pub fn fail(&self, failure: Failure) {
        self.state.borrow_mut().failure = Some(failure);
    }

    /// The end of record `index`, which is number `position` of a completion. True when it was the
    /// last one: then [`Self::answer`].
    pub fn complete(
        &self,
        index: usize,
        now: Micros,
        completion: &Completion,
        position: usize,
    ) -> bool {
        let outcome = match (&completion.delivery, Failure::of(&completion.delivery)) {
            (_, Some(failure)) => Outcome::Failed(failure),
            (Delivery::Written { base_offset, .. }, None) => {
                Outcome::Written { offset: base_offset.map(|base| base + position as i64) }
            }
            (_, None) => Outcome::Failed(Failure::internal()),
        };
        self.end(index, now, completion.partition, outcome)
    }

    /// As [`Self::complete`], where the producer is no more.
    pub fn give_up(&self, index: usize, now: Micros, failure: Failure) -> bool {
        self.end(index, now, None, Outcome::Failed(failure))
    }

    fn end(&self, index: usize, now: Micros, partition: Option<i32>, outcome: Outcome) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(record) = state.records.get_mut(index) else { return false };
        record.partition = partition;
        record.latency = Some(now.saturating_sub(self.started));
        record.outcome = outcome;
        let left = self.waiting.get().saturating_sub(1);
        self.waiting.set(left);
        left == 0
    }

    /// Answers the request if it still waits, and runs what nginx has put off for its connection.
    /// To be called from events of our own only, with nothing borrowed: nginx may free this and
    /// other requests, and start new ones.
    pub fn answer(&self, retry_after: impl FnOnce() -> u64) {
        let r = self.r.replace(ptr::null_mut());
        if r.is_null() {
            return;
        }
        // SAFETY: `r` is live until its cleanup has run, which would have made it null. The
        // reference that reading the body took is given back here, once: `r` is null from now on.
        // nginx keeps the connection's structure beyond the request.
        unsafe {
            let c = (*r).connection;
            let rc = self.send(r, retry_after);
            ngx_http_finalize_request(r, rc);
            ngx_http_run_posted_requests(c);
        }
    }

    /// Answers from within the request's own handler; the result is for
    /// `ngx_http_finalize_request`, or for a content handler to return.
    pub fn answer_now(&self, retry_after: impl FnOnce() -> u64) -> ngx_int_t {
        let r = self.r.replace(ptr::null_mut());
        if r.is_null() {
            return nginx_sys::NGX_ERROR as ngx_int_t;
        }
        // SAFETY: as in `answer`.
        unsafe { self.send(r, retry_after) }
    }

    /// Lets go of the request: its handler ends it in another way.
    pub fn disarm(&self) {
        self.r.set(ptr::null_mut());
    }

    /// # Safety
    /// `r` is this waiter's request, live and not answered.
    unsafe fn send(
        &self,
        r: *mut ngx_http_request_t,
        retry_after: impl FnOnce() -> u64,
    ) -> ngx_int_t {
        // SAFETY: as the caller promises.
        guard("an answer", || unsafe { self.make_answer(retry_after).send(r) })
            .unwrap_or(NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t)
    }

    /// # Safety
    /// The request is live: topics lie in its pool.
    unsafe fn make_answer(&self, retry_after: impl FnOnce() -> u64) -> Answer {
        let state = self.state.borrow();
        // SAFETY: as the caller promises.
        let (status, body) = unsafe { state.document(self.conf) };
        let header = match status {
            503 => Some(Header::RetryAfter(retry_after())),
            405 => Some(Header::Allow(self.conf.methods.names.join(", "))),
            _ => None,
        };
        Answer { status, body, header }
    }

    /// Calls `visit` for each record, or once without one where the request failed before it made
    /// any.
    ///
    /// # Safety
    /// The request's pool is live.
    pub unsafe fn visit(&self, mut visit: impl FnMut(&Seen<'_>)) {
        let state = self.state.borrow();
        let failure = state.failure.as_ref();
        if state.records.is_empty() {
            let outcome = &Outcome::None;
            visit(&Seen { topic: None, partition: None, latency: None, outcome, failure });
        }
        for record in &state.records {
            visit(&Seen {
                // SAFETY: topics lie in the request's pool or in the configuration.
                topic: Some(unsafe { &*record.topic }),
                partition: record.partition,
                latency: record.latency,
                outcome: &record.outcome,
                failure,
            });
        }
    }
}

/// A record as variables see it.
pub struct Seen<'a> {
    pub topic: Option<&'a str>,
    pub partition: Option<i32>,
    pub latency: Option<Micros>,
    pub outcome: &'a Outcome,
    /// Of the whole request.
    pub failure: Option<&'a Failure>,
}

impl State {
    /// # Safety
    /// The request is live: topics lie in its pool.
    unsafe fn document(&self, conf: &LocationConf) -> (u16, Vec<u8>) {
        let detail = conf.error_detail;
        let error = |failure: &Failure| {
            (failure.status, json::error(failure.status, failure.text(detail).as_bytes()))
        };
        if let Some(failure) = &self.failure {
            return error(failure);
        }
        if self.records.iter().all(|record| matches!(record.outcome, Outcome::Queued)) {
            return (conf.success_status.unwrap_or(202), json::queued());
        }
        let success = conf.success_status.unwrap_or(200);
        if let [record] = &self.records[..] {
            return match &record.outcome {
                Outcome::Written { offset } => {
                    // SAFETY: as the caller promises.
                    let topic = unsafe { &*record.topic };
                    (success, json::sent(topic, record.partition, *offset))
                }
                Outcome::Failed(failure) => error(failure),
                _ => error(&Failure::internal()),
            };
        }
        let internal = Failure::internal();
        let answers: Vec<RecordAnswer<'_>> = self
            .records
            .iter()
            .map(|record| {
                let outcome = match &record.outcome {
                    Outcome::Written { offset } => {
                        json::Outcome::Written { partition: record.partition, offset: *offset }
                    }
                    other => {
                        let failure = match other {
                            Outcome::Failed(failure) => failure,
                            _ => &internal,
                        };
                        let error = failure.text(detail).as_bytes();
                        json::Outcome::Failed { status: failure.status, error }
                    }
                };
                // SAFETY: as the caller promises.
                RecordAnswer { topic: unsafe { &*record.topic }, outcome }
            })
            .collect();
        json::records(&answers, success)
    }
}

/// The request dies: it has been answered, or its client has left, or nginx gives it up.
unsafe extern "C" fn on_request_end(data: *mut c_void) {
    guard("the end of a request", || {
        // SAFETY: the pool's list still holds its count.
        let waiter = unsafe { &*data.cast::<Waiter>() };
        waiter.disarm();
        if waiter.waiting.get() == 0 || waiter.conf.ignore_client_abort {
            return;
        }
        let Some(driver) = waiter.conf.cluster.and_then(worker::driver) else { return };
        let tokens: Vec<u64> = waiter
            .state
            .borrow()
            .records
            .iter()
            .filter(|record| matches!(record.outcome, Outcome::Waiting))
            .map(|record| record.token)
            .collect();
        driver.cancel(&tokens);
    });
}

unsafe extern "C" fn on_pool_end(data: *mut c_void) {
    guard("the end of a request's pool", || {
        // SAFETY: the count that `attach` gave to the list; nginx calls this once.
        drop(unsafe { Rc::from_raw(data.cast::<Waiter>().cast_const()) });
    });
}
