//! One connection to a broker: from the connect wish over version negotiation to requests and their
//! answers, in order.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::broker::BrokerKey;
use crate::negotiation::{InitProducerIdVersion, MetadataVersion, Negotiated, ProduceVersion};
use crate::wire::{ApiKey, FrameDecoder};
use crate::{ConnId, Micros};

/// Largest answer that is believed. A metadata answer for 100,000 partitions takes about 5 MiB.
pub(super) const MAX_FRAME: usize = 64 * 1024 * 1024;
/// The same for the answer to ApiVersions (some 2 KiB), before it is known that a broker answers.
const MAX_FIRST_FRAME: usize = 256 * 1024;

/// Names a request: where it was sent, and its correlation id there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionRequest {
    pub conn: ConnId,
    pub correlation_id: i32,
}

/// A partition in a Produce request, under the topic id that the request named (zero if by name).
#[derive(Debug, Clone, Copy)]
pub(super) struct SentPartition {
    pub topic: usize,
    pub topic_id: [u8; 16],
    pub index: i32,
}

#[derive(Debug)]
pub(super) enum RequestKind {
    ApiVersions(i16),
    Metadata { version: MetadataVersion, full: bool },
    InitProducerId(InitProducerIdVersion),
    Produce { version: ProduceVersion, partitions: Vec<SentPartition> },
}

#[derive(Debug)]
pub(super) struct Request {
    pub id: ConnectionRequest,
    pub kind: RequestKind,
    /// False for Produce with `acks=0`.
    pub answered: bool,
    pub deadline: Micros,
    /// Position in the outgoing stream after the last byte of the frame.
    pub end: u64,
}

impl RequestKind {
    pub fn api_and_version(&self) -> (ApiKey, i16) {
        match self {
            RequestKind::ApiVersions(version) => (ApiKey::ApiVersions, *version),
            RequestKind::Metadata { version, .. } => (ApiKey::Metadata, version.get()),
            RequestKind::InitProducerId(version) => (ApiKey::InitProducerId, version.get()),
            RequestKind::Produce { version, .. } => (ApiKey::Produce, version.get()),
        }
    }

    pub fn is_produce(&self) -> bool {
        matches!(self, RequestKind::Produce { .. })
    }
}

/// The life of a connection. What a broker can do is known only to the last state: no request but
/// ApiVersions can be encoded before.
#[derive(Debug)]
pub(super) enum State {
    Connecting,
    Negotiating,
    Ready(Box<Negotiated>),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub id: ConnId,
    pub broker: BrokerKey,
    pub state: State,
    /// Until when the connection must be ready.
    pub setup_deadline: Micros,
    pub frames: FrameDecoder,
    outgoing: VecDeque<Bytes>,
    queued_total: u64,
    transmitted_total: u64,
    /// [`crate::Output::Transmit`] is out and nothing was added since.
    pub announced: bool,
    pub in_flight: VecDeque<Request>,
    next_correlation_id: i32,
    pub last_used: Micros,
    /// KIP-219: the broker reads nothing from us before this time.
    pub throttled_until: Micros,
    /// No new requests; close once everything is answered.
    pub retiring: bool,
    /// The broker has answered more than ApiVersions: only then is it known to work. One that
    /// closes every connection after negotiation must be left alone for longer and longer.
    pub proven: bool,
}

impl Connection {
    pub fn new(id: ConnId, broker: BrokerKey, now: Micros, setup_deadline: Micros) -> Self {
        Self {
            id,
            broker,
            state: State::Connecting,
            setup_deadline,
            frames: FrameDecoder::new(MAX_FIRST_FRAME),
            outgoing: VecDeque::new(),
            queued_total: 0,
            transmitted_total: 0,
            announced: false,
            in_flight: VecDeque::new(),
            next_correlation_id: 1,
            last_used: now,
            throttled_until: 0,
            retiring: false,
            proven: false,
        }
    }

    pub fn negotiated(&self) -> Option<&Negotiated> {
        match &self.state {
            State::Ready(negotiated) => Some(negotiated),
            _ => None,
        }
    }

    /// Ready, not throttled, not on its way out.
    pub fn takes_requests(&self, now: Micros) -> bool {
        matches!(self.state, State::Ready(_)) && !self.retiring && now >= self.throttled_until
    }

    pub fn next_correlation_id(&self) -> i32 {
        self.next_correlation_id
    }

    pub fn produce_in_flight(&self) -> usize {
        self.in_flight.iter().filter(|request| request.kind.is_produce()).count()
    }

    /// Queues one encoded frame.
    pub fn send(
        &mut self,
        now: Micros,
        deadline: Micros,
        kind: RequestKind,
        answered: bool,
        frame: impl IntoIterator<Item = Bytes>,
    ) -> ConnectionRequest {
        for segment in frame {
            self.queued_total += segment.len() as u64;
            self.outgoing.push_back(segment);
        }
        let id = ConnectionRequest { conn: self.id, correlation_id: self.next_correlation_id };
        self.next_correlation_id = self.next_correlation_id.wrapping_add(1).max(1);
        self.in_flight.push_back(Request { id, kind, answered, deadline, end: self.queued_total });
        self.last_used = now;
        self.announced = false;
        id
    }

    pub fn outgoing(&self) -> impl Iterator<Item = &Bytes> {
        self.outgoing.iter()
    }

    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The driver has written so many bytes.
    pub fn transmitted(&mut self, now: Micros, mut bytes: usize) {
        self.transmitted_total += bytes as u64;
        self.last_used = now;
        while bytes > 0 {
            let Some(front) = self.outgoing.front_mut() else { break };
            let n = bytes.min(front.len());
            front.advance(n);
            bytes -= n;
            if front.is_empty() {
                self.outgoing.pop_front();
            }
        }
    }

    /// Whether the whole frame has left. A broker acts only on whole frames: one that was cut off
    /// earlier has certainly not been processed.
    pub fn has_left(&self, request: &Request) -> bool {
        request.end <= self.transmitted_total
    }

    /// Requests that want no answer are done when they have left, also while others wait for theirs.
    pub fn take_unanswered(&mut self) -> Option<Request> {
        let done = |request: &Request| !request.answered && self.has_left(request);
        let index = self.in_flight.iter().position(done)?;
        self.in_flight.remove(index)
    }
}
