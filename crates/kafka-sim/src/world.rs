//! The run of one seed: virtual time, the queue of events, and everything they touch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use kafka::{ConnId, Micros, Producer, QueryId};

use crate::cluster::{Cluster, PartitionRef, View};
use crate::faults::Fault;
use crate::finale::Phase;
use crate::ledger::Ledger;
use crate::network::Link;
use crate::plan::{Mode, Outage, Plan};
use crate::queue::Queue;
use crate::random::Random;
use crate::record::Hash;
use crate::sent::Sent;
use crate::serve::Waiting;
use crate::traffic::Traffic;
use crate::violation::{Invariant, Violation};

#[derive(Debug)]
pub enum Event {
    // What happens at the client; it sleeps through these during a clock jump.
    Operation,
    Timer(u64),
    Resolved { query: QueryId, result: Result<Vec<SocketAddr>, String> },
    Connected { conn: ConnId },
    ClosedAtClient { conn: ConnId, reason: &'static str },
    ToClient { conn: ConnId, bytes: Bytes },
    Writable(ConnId),
    Phase,

    // What happens at the brokers.
    Accepted { conn: ConnId, address: SocketAddr },
    ToBroker { conn: ConnId, upto: u64 },
    ClosedAtBroker { conn: ConnId, discard: bool },
    Serve { conn: ConnId },
    Unmute { conn: ConnId },
    Replicated { at: PartitionRef, end: i64, epoch: i32 },
    WaitedEnough { id: u64 },
    Heard { broker: usize, incarnation: u64, view: Rc<View> },
    Fault(Fault),
}

impl Event {
    fn is_at_client(&self) -> bool {
        matches!(
            self,
            Event::Operation
                | Event::Timer(_)
                | Event::Resolved { .. }
                | Event::Connected { .. }
                | Event::ClosedAtClient { .. }
                | Event::ToClient { .. }
                | Event::Writable(_)
                | Event::Phase
        )
    }
}

pub struct World {
    pub plan: Plan,
    pub now: Micros,
    pub queue: Queue<Event>,
    pub net: Random,
    pub work: Random,
    pub fate: Random,
    pub producer: Producer,
    pub cluster: Cluster,
    pub links: BTreeMap<ConnId, Link>,
    /// Records that were in some leader's log at some time.
    pub appended: BTreeSet<u64>,
    /// Records that must be in a log, whatever `acks` says: nothing was wrong any more.
    pub owed: BTreeSet<u64>,
    pub waiting: BTreeMap<u64, Waiting>,
    pub next_waiting: u64,
    pub ledger: Ledger,
    pub sent: Sent,
    pub traffic: Traffic,
    pub phase: Phase,
    /// What is broken for good at present.
    pub outage: Option<Outage>,
    pub operations_left: u64,
    pub sleeping_until: Micros,
    /// Nobody produces, and nothing goes wrong, before this time.
    pub silent_until: Micros,
    /// How long the client has slept in all: it may be late by as much.
    pub slept: Micros,
    pub timer: Option<Micros>,
    pub timer_generation: u64,
    pub idle_timers: u32,
    pub transmits: Vec<ConnId>,
    pub busy_outputs: u32,
    /// Of all bytes and completions that came out, with their times (I14).
    pub digest: Hash,
    pub violation: Option<Violation>,
    pub events: u64,
    pub requests: u64,
    traced: Option<VecDeque<String>>,
}

impl World {
    pub fn new(plan: Plan, trace: bool) -> Self {
        let mut random = Random::new(plan.seed ^ 0xa5a5_5a5a_0f0f_f0f0);
        let topics = plan.topics.iter().map(|topic| topic.name.as_str());
        let mut world = Self {
            now: 1_000_000,
            queue: Queue::default(),
            net: random.fork(),
            work: random.fork(),
            fate: random.fork(),
            producer: Producer::new(plan.config.clone(), plan.seed),
            cluster: Cluster::new(&plan),
            links: BTreeMap::new(),
            appended: BTreeSet::new(),
            owed: BTreeSet::new(),
            waiting: BTreeMap::new(),
            next_waiting: 0,
            ledger: Ledger::new(topics),
            sent: Sent::new(&plan.config),
            traffic: Traffic::default(),
            phase: Phase::Chaos,
            outage: match plan.mode {
                Mode::Outage(outage) => Some(outage),
                _ => None,
            },
            operations_left: plan.operations,
            sleeping_until: 0,
            silent_until: 0,
            slept: 0,
            timer: None,
            timer_generation: 0,
            idle_timers: 0,
            transmits: Vec::new(),
            busy_outputs: 0,
            digest: Hash::new(),
            violation: None,
            events: 0,
            requests: 0,
            traced: trace.then(VecDeque::new),
            plan,
        };
        world.queue.push(world.now, Event::Operation);
        world.queue.push(world.now + world.plan.chaos, Event::Phase);
        world.plan_faults();
        world
    }

    pub fn run(&mut self) {
        /// Far more than any plan needs.
        const MAX_EVENTS: u64 = 3_000_000;
        while self.violation.is_none() {
            let Some((at, event)) = self.queue.pop() else { break };
            if event.is_at_client() {
                if self.phase == Phase::Over {
                    continue;
                }
                if at < self.sleeping_until {
                    let until = self.sleeping_until;
                    self.queue.push(until, event);
                    continue;
                }
            }
            self.now = at.max(self.now);
            self.events += 1;
            if self.events > MAX_EVENTS {
                self.violate(Invariant::I11, "events without end".into());
            }
            self.happen(event);
        }
        if self.violation.is_none() {
            self.check_logs();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Operation => self.operate(),
            Event::Timer(generation) => self.timer_fired(generation),
            Event::Resolved { query, result } => self.resolved(query, result),
            Event::Connected { conn } => self.connected(conn),
            Event::ClosedAtClient { conn, reason } => self.closed_at_client(conn, reason),
            Event::ToClient { conn, bytes } => self.arrived_at_client(conn, &bytes),
            Event::Writable(conn) => {
                self.write(conn);
                self.pump();
            }
            Event::Phase => self.next_phase(),
            Event::Accepted { conn, address } => self.accept(conn, address),
            Event::ToBroker { conn, upto } => self.arrived_at_broker(conn, upto),
            Event::ClosedAtBroker { conn, discard } => self.closed_at_broker(conn, discard),
            Event::Serve { conn } => self.serve(conn),
            Event::Unmute { conn } => self.unmute(conn),
            Event::Replicated { at, end, epoch } => self.replicated(at, end, epoch),
            Event::WaitedEnough { id } => self.waited_enough(id),
            Event::Heard { broker, incarnation, view } => self.heard(broker, incarnation, view),
            Event::Fault(fault) => self.strike(fault),
        }
    }

    pub fn violate(&mut self, invariant: Invariant, what: String) {
        self.trace(|| format!("VIOLATION {invariant:?}: {what}"));
        if self.violation.is_none() {
            self.violation = Some(Violation { seed: self.plan.seed, invariant, what });
        }
    }

    pub fn check(&mut self, result: Result<(), (Invariant, String)>) {
        if let Err((invariant, what)) = result {
            self.violate(invariant, what);
        }
    }

    pub fn trace(&mut self, line: impl FnOnce() -> String) {
        const KEPT: usize = 20_000;
        let now = self.now;
        if let Some(lines) = &mut self.traced {
            if lines.len() == KEPT {
                lines.pop_front();
            }
            lines.push_back(format!("{:>9}.{:03} ms  {}", now / 1000, now % 1000, line()));
        }
    }

    pub fn take_trace(&mut self) -> Vec<String> {
        self.traced.take().map(Vec::from).unwrap_or_default()
    }
}
