//! Connections: ordered bytes with cuts, delays, stalls, resets and half-open ends.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use kafka::{ConnId, Input, MILLISECOND, Micros, SECOND};

use crate::cluster::PartitionRef;
use crate::era::Era;
use crate::wire::Request;
use crate::world::{Event, World};

/// What a kernel takes before it tells the writer to wait.
const SEND_BUFFER: u64 = 128 * 1024;

/// What the producer learns once the last byte of an answer has reached it.
#[derive(Debug)]
pub struct Answer {
    pub correlation_id: i32,
    pub throttle_ms: i32,
    /// ApiVersions without an error.
    pub negotiated: bool,
    pub results: Vec<(PartitionRef, i16)>,
}

#[derive(Debug)]
pub struct Link {
    pub broker: usize,
    pub incarnation: u64,
    pub era: &'static Era,
    /// The driver holds it for the producer.
    pub client_open: bool,
    pub established: bool,
    pub server_open: bool,
    /// The broker has seen the end of the stream and serves what came before it.
    pub closing: bool,

    /// Bytes that the kernel has taken, and those of them that have arrived.
    written: u64,
    arrived: u64,
    to_broker_at: Micros,
    /// Nothing more arrives at the broker.
    deaf: bool,
    blocked: bool,
    /// The frame that is being written.
    pub partial: BytesMut,
    pub consumed: u64,
    /// Whole frames with the position of their end.
    pub frames: VecDeque<(u64, Rc<Request>)>,

    answered: u64,
    delivered: u64,
    to_client_at: Micros,
    /// Nothing more arrives at the client.
    mute: bool,
    pub answers: VecDeque<(u64, Answer)>,

    /// A request is being served; the next one is not read before its answer is out.
    pub busy: bool,
    pub serve_scheduled: bool,
    /// ApiVersions has been answered, as far as the client knows.
    pub negotiated: bool,
    pub last_correlation_id: Option<i32>,
    /// Requests that the client waits for an answer to.
    pub unanswered: u32,
    /// Records that left in requests without an answer (`acks=0`).
    pub without_answer: Vec<u64>,
    /// KIP-219, as far as the client knows.
    pub throttled_until: Micros,
    /// Bytes that the producer had queued when it was last looked at.
    pub queued: u64,
}

impl Link {
    pub fn new(broker: usize, incarnation: u64, era: &'static Era) -> Self {
        Self {
            broker,
            incarnation,
            era,
            client_open: true,
            established: false,
            server_open: false,
            closing: false,
            written: 0,
            arrived: 0,
            to_broker_at: 0,
            deaf: false,
            blocked: false,
            partial: BytesMut::new(),
            consumed: 0,
            frames: VecDeque::new(),
            answered: 0,
            delivered: 0,
            to_client_at: 0,
            mute: false,
            answers: VecDeque::new(),
            busy: false,
            serve_scheduled: false,
            negotiated: false,
            last_correlation_id: None,
            unanswered: 0,
            without_answer: Vec::new(),
            throttled_until: 0,
            queued: 0,
        }
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn next_arrived(&mut self) -> Option<Rc<Request>> {
        if !self.has_arrived() {
            return None;
        }
        self.frames.pop_front().map(|(_, request)| request)
    }

    pub fn has_arrived(&self) -> bool {
        self.frames.front().is_some_and(|(end, _)| *end <= self.arrived)
    }

    pub fn is_half_open(&self) -> bool {
        self.client_open && self.established && (self.deaf || self.mute)
    }

    /// Nothing is under way to the broker, and nothing waits there.
    pub fn is_quiet(&self) -> bool {
        !self.busy && (self.frames.is_empty() || !self.server_open)
    }
}

impl World {
    /// The driver's side of [`kafka::Output::Transmit`]: writes what the kernel takes.
    pub fn write(&mut self, conn: ConnId) {
        while self.violation.is_none() {
            let Some(link) = self.links.get(&conn) else { return };
            if !link.client_open || !link.established {
                return;
            }
            let segments: Vec<Bytes> = self.producer.transmit(conn).cloned().collect();
            let total: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
            if total == 0 {
                return;
            }
            let room = SEND_BUFFER.saturating_sub(link.written - link.arrived);
            let mut taken = total.min(room);
            let partial = taken > 0 && self.net.chance(self.plan.faults.partial_write);
            if partial {
                taken = if self.net.chance(0.3) { 1 } else { 1 + self.net.below(taken) };
            }
            if taken == 0 {
                self.link(conn).blocked = true;
                return;
            }
            let mut left = taken;
            for segment in segments {
                let part = segment.slice(..(left as usize).min(segment.len()));
                left -= part.len() as u64;
                self.observe(conn, &part);
            }
            self.link(conn).written += taken;
            self.carry_to_broker(conn, taken);
            let now = self.now;
            self.producer.handle(now, Input::Transmitted { conn, bytes: taken as usize });
            self.drain_outputs();
            if partial && taken < total {
                let pause = self.net.magnitude(1, 5 * MILLISECOND);
                return self.queue.push(now + pause, Event::Writable(conn));
            }
        }
    }

    fn carry_to_broker(&mut self, conn: ConnId, bytes: u64) {
        let link = &self.links[&conn];
        let written = link.written;
        if link.deaf {
            return;
        }
        if self.net.chance(self.plan.faults.half_open) {
            self.half_open(conn);
            if self.links[&conn].deaf {
                return;
            }
        }
        let reset = self.net.chance(self.plan.faults.reset);
        let upto = written - if reset { self.net.between(0, bytes) } else { 0 };
        let mut at = written - bytes;
        while at < upto {
            let next = self.cut(at, upto);
            let due = self.arrival(self.links[&conn].to_broker_at);
            self.link(conn).to_broker_at = due;
            self.queue.push(due, Event::ToBroker { conn, upto: next });
            at = next;
        }
        if reset {
            let due = self.links[&conn].to_broker_at.max(self.now) + 1;
            self.reset(conn, due);
        }
    }

    /// The broker's side of writing.
    pub fn carry_to_client(&mut self, conn: ConnId, bytes: Bytes, answer: Answer) {
        let link = self.link(conn);
        link.answered += bytes.len() as u64;
        link.answers.push_back((link.answered, answer));
        if link.mute {
            return;
        }
        if self.net.chance(self.plan.faults.half_open) {
            self.half_open(conn);
            if self.links[&conn].mute {
                return;
            }
        }
        let reset = self.net.chance(self.plan.faults.reset);
        let total = bytes.len() as u64;
        let upto = total - if reset { self.net.between(0, total) } else { 0 };
        let mut at = 0;
        while at < upto {
            let next = self.cut(at, upto);
            let due = self.arrival(self.links[&conn].to_client_at);
            self.link(conn).to_client_at = due;
            let bytes = bytes.slice(at as usize..next as usize);
            self.queue.push(due, Event::ToClient { conn, bytes });
            at = next;
        }
        if reset {
            let due = self.links[&conn].to_client_at.max(self.now) + 1;
            self.reset(conn, due);
        }
    }

    /// Where the next piece ends: often after one byte.
    fn cut(&mut self, at: u64, upto: u64) -> u64 {
        if !self.net.chance(self.plan.faults.cut) || upto - at > 20_000 {
            return upto;
        }
        match self.net.below(3) {
            0 => at + 1,
            1 => at + self.net.between(1, (upto - at).min(16)),
            _ => at + self.net.between(1, upto - at),
        }
    }

    fn arrival(&mut self, after: Micros) -> Micros {
        let mut delay = self.net.between(self.plan.latency / 2, self.plan.latency);
        if self.net.chance(self.plan.faults.stall) {
            delay += self.net.magnitude(MILLISECOND, 20 * SECOND);
        }
        (self.now + delay).max(after)
    }

    /// One direction, or both, lose everything from now on; nobody is told.
    fn half_open(&mut self, conn: ConnId) {
        let which = self.net.below(3);
        let link = self.link(conn);
        link.deaf |= which != 0;
        link.mute |= which != 1;
        self.trace(|| format!("{conn:?} half-open ({which})"));
    }

    /// Both ends learn of it at their own time; what was on its way to the broker before is served.
    pub fn reset(&mut self, conn: ConnId, at: Micros) {
        let (there, back) = (self.net.below(3), self.net.magnitude(1, 50 * MILLISECOND));
        let link = self.link(conn);
        link.deaf = true;
        link.mute = true;
        let discard = there == 0;
        self.queue.push(at, Event::ClosedAtBroker { conn, discard });
        self.queue.push(at + back, Event::ClosedAtClient { conn, reason: "reset by peer" });
    }

    pub fn arrived_at_broker(&mut self, conn: ConnId, upto: u64) {
        let broker = self.links[&conn].broker;
        let gone = self.cluster.brokers[broker].incarnation != self.links[&conn].incarnation;
        let link = self.link(conn);
        link.arrived = upto;
        let blocked = std::mem::take(&mut link.blocked);
        let closed = !link.server_open;
        if blocked {
            self.queue.push(self.now + 1, Event::Writable(conn));
        }
        // The new process, or the machine's kernel, knows nothing of this connection.
        if gone && self.cluster.brokers[broker].up {
            return self.reset(conn, self.now);
        }
        if !gone || !closed {
            self.serve_next(conn);
        }
    }

    pub fn arrived_at_client(&mut self, conn: ConnId, bytes: &Bytes) {
        let link = self.link(conn);
        if !link.client_open {
            return;
        }
        link.delivered += bytes.len() as u64;
        let delivered = link.delivered;
        while self.links[&conn].answers.front().is_some_and(|(end, _)| *end <= delivered) {
            let Some((_, answer)) = self.link(conn).answers.pop_front() else { break };
            self.answer_delivered(conn, answer);
        }
        let now = self.now;
        self.trace(|| format!("{conn:?} received {} bytes", bytes.len()));
        self.producer.handle(now, Input::Received { conn, bytes });
        self.pump();
    }

    fn answer_delivered(&mut self, conn: ConnId, answer: Answer) {
        let now = self.now;
        let link = self.link(conn);
        link.negotiated |= answer.negotiated;
        link.unanswered -= 1;
        if answer.throttle_ms > 0 {
            let until = now + answer.throttle_ms as u64 * MILLISECOND;
            link.throttled_until = link.throttled_until.max(until);
        }
        for (at, code) in answer.results {
            self.sent.answer(conn, answer.correlation_id, at, code);
        }
    }

    pub fn closed_at_client(&mut self, conn: ConnId, reason: &str) {
        let link = self.link(conn);
        if !std::mem::take(&mut link.client_open) {
            return;
        }
        link.mute = true;
        link.deaf = true;
        self.sent.connection_ended(conn);
        self.trace(|| format!("{conn:?} closed: {reason}"));
        let now = self.now;
        self.producer.handle(now, Input::Closed { conn, reason: reason.into() });
        self.pump();
    }

    /// The driver closes. What the broker has got by then it may still serve: a zombie request.
    pub fn close_by_client(&mut self, conn: ConnId) {
        self.sent.connection_ended(conn);
        let reset = self.net.chance(0.3);
        let delay = self.net.between(0, self.plan.latency);
        let link = self.link(conn);
        link.client_open = false;
        let at = match reset {
            true => {
                link.deaf = true;
                self.now + delay
            }
            false => self.now.max(self.links[&conn].to_broker_at) + delay,
        };
        self.queue.push(at, Event::ClosedAtBroker { conn, discard: reset });
    }

    pub fn closed_at_broker(&mut self, conn: ConnId, discard: bool) {
        let link = self.link(conn);
        if discard {
            link.frames.clear();
        }
        link.closing = true;
        if !link.busy && !link.has_arrived() {
            link.server_open = false;
        }
    }

    pub fn link(&mut self, conn: ConnId) -> &mut Link {
        self.links.get_mut(&conn).expect("links are never removed")
    }
}
