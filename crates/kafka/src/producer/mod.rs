//! The producer: its state, its run loop, and one file for each thing it does.

mod accept;
mod acknowledge;
mod backoff;
mod batch;
mod broker;
mod close;
mod complete;
mod connect;
mod connection;
mod drain;
mod expire;
mod identity;
mod lookup;
mod partition;
mod partitioner;
mod random;
mod topic;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::{AppendError, Completion, Config, ConnId, Event, Input, MILLISECOND, Micros, Output};
use crate::{Record, SECOND, Severity};
use broker::Brokers;
use connection::{Connection, ConnectionRequest};
use identity::Identity;
use partition::Partition;
use random::Random;
use topic::Topics;

pub use partitioner::murmur2;

/// A topic's slot and a partition's number.
type PartitionRef = (usize, usize);

/// The producer of one cluster; see the crate's documentation for the contract.
#[derive(Debug)]
pub struct Producer {
    config: Config,
    random: Random,
    topics: Topics,
    brokers: Brokers,
    connections: BTreeMap<ConnId, Connection>,
    identity: Identity,
    lookup: lookup::Schedule,
    /// Partitions with records that wait or are on their way.
    active: BTreeSet<PartitionRef>,
    /// Topics with records that wait for metadata.
    waiting: BTreeSet<usize>,
    /// Where the next Produce request begins, so that none is always last.
    rotation: PartitionRef,
    outputs: VecDeque<Output>,
    /// Something has changed since the last look at everything.
    dirty: bool,
    timer: Option<Micros>,
    next_id: u64,
    memory: usize,
    outstanding: usize,
    /// Since when no broker has been usable although one was wanted, and why.
    failing: Option<(Micros, Arc<str>)>,
    closing: Option<Micros>,
}

impl Producer {
    /// `seed` feeds jitter and the choice of sticky partitions; workers should differ in it.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            topics: Topics::default(),
            brokers: Brokers::new(&config.bootstrap),
            connections: BTreeMap::new(),
            identity: Identity::new(&config),
            lookup: lookup::Schedule::default(),
            active: BTreeSet::new(),
            waiting: BTreeSet::new(),
            rotation: (0, 0),
            outputs: VecDeque::new(),
            dirty: false,
            timer: None,
            next_id: 1,
            memory: 0,
            outstanding: 0,
            failing: None,
            closing: None,
            config,
        }
    }

    /// Takes all of the records or none. Each accepted record comes back in exactly one
    /// [`Completion`].
    pub fn append(&mut self, now: Micros, records: &[Record<'_>]) -> Result<(), AppendError> {
        self.dirty = true;
        self.accept(now, records)
    }

    /// Withdraws a record if it is still unsent; it then completes as cancelled. Otherwise nothing
    /// changes.
    pub fn cancel(&mut self, _now: Micros, token: u64) {
        self.dirty = true;
        self.withdraw(token);
    }

    pub fn handle(&mut self, now: Micros, input: Input<'_>) {
        self.dirty = true;
        match input {
            Input::Timer => {}
            Input::Resolved { query, result } => self.on_resolved(now, query, result),
            Input::Connected { conn } => self.on_connected(now, conn),
            Input::Received { conn, bytes } => self.on_received(now, conn, bytes),
            Input::Transmitted { conn, bytes } => self.on_transmitted(now, conn, bytes),
            Input::Closed { conn, reason } => self.on_closed(now, conn, &reason),
        }
    }

    /// The next thing to do, until there is none.
    pub fn poll(&mut self, now: Micros) -> Option<Output> {
        if self.dirty && self.outputs.is_empty() {
            self.dirty = false;
            self.advance(now);
        }
        self.outputs.pop_front()
    }

    /// When [`Input::Timer`] is wanted; valid once [`Producer::poll`] has returned `None`.
    pub fn next_timer(&self) -> Option<Micros> {
        self.timer
    }

    /// The bytes that wait to be written on a connection, in order.
    pub fn transmit(&self, conn: ConnId) -> impl Iterator<Item = &Bytes> {
        self.connections.get(&conn).into_iter().flat_map(Connection::outgoing)
    }

    /// Records accepted and not completed.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Bytes held for records.
    pub fn memory_used(&self) -> usize {
        self.memory
    }

    /// How long a caller that was refused should wait: the longest throttle, at least a second.
    pub fn retry_after(&self, now: Micros) -> Micros {
        self.throttle(now).max(SECOND)
    }

    /// No more records; delivers what is held until `deadline`.
    pub fn close(&mut self, now: Micros, deadline: Micros) {
        self.dirty = true;
        self.begin_close(now, deadline);
    }

    /// Completes everything now as not written or possibly written, and closes all connections.
    pub fn abort(&mut self, now: Micros) {
        self.dirty = true;
        self.closing = Some(now);
        self.give_up();
    }

    /// Does all that is due, and works out when the next thing will be.
    fn advance(&mut self, now: Micros) {
        let mut timer = Timer { now, at: None };
        self.expire(now, &mut timer);
        self.check_connections(now, &mut timer);
        self.check_close(now, &mut timer);
        if self.closing.is_some() && self.outstanding == 0 {
            self.timer = None;
            return;
        }
        self.settle_epochs();
        self.ask_for_identity(now, &mut timer);
        self.drain(now, &mut timer);
        self.ask_for_metadata(now, &mut timer);
        self.announce_transmits();
        self.timer = timer.at;
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn event(&mut self, severity: Severity, kind: &'static str, message: String) {
        self.outputs.push_back(Output::Event(Event { severity, kind, message }));
    }

    fn partition(&self, (topic, index): PartitionRef) -> Option<&Partition> {
        self.topics.get(topic)?.partitions.get(index)
    }

    fn partition_mut(&mut self, (topic, index): PartitionRef) -> Option<&mut Partition> {
        self.topics.get_mut(topic)?.partitions.get_mut(index)
    }

    /// Whether the cluster counts as unreachable: nothing worked for `delivery_timeout`.
    fn is_down(&self, now: Micros) -> bool {
        self.failing
            .as_ref()
            .is_some_and(|(since, _)| now >= since.saturating_add(self.config.delivery_timeout))
    }

    /// How long brokers want us to wait.
    fn throttle(&self, now: Micros) -> Micros {
        let until = self.connections.values().map(|c| c.throttled_until).max().unwrap_or(0);
        until.saturating_sub(now)
    }

    fn push_completion(&mut self, completion: Completion) {
        self.outstanding -= completion.tokens.len();
        self.outputs.push_back(Output::Completed(completion));
    }
}

/// The earliest of all deadlines.
#[derive(Debug)]
struct Timer {
    now: Micros,
    at: Option<Micros>,
}

impl Timer {
    /// Wake at `at`. What is due already has just been looked at and could not be done: it waits
    /// for another event, with a millisecond as the floor so that a mistake cannot spin.
    fn wake_at(&mut self, at: Micros) {
        let at = at.max(self.now + MILLISECOND);
        self.at = Some(self.at.map_or(at, |other| other.min(at)));
    }
}
