//! One partition: who leads it, what waits for it, what is on its way, and its sequence numbers.

use std::collections::VecDeque;

use super::ConnectionRequest;
use super::batch::{Batch, Sequence, add_sequence};
use crate::{ConnId, Micros, Record, SECOND};

/// A log may have forgotten a quiet producer (retention, `producer.id.expiration.ms`): prove again
/// that it knows us before several batches are sent at once.
const PROOF_LIFETIME: Micros = 600 * SECOND;

/// How many answers with an older leader epoch are taken for stragglers before one is believed
/// (an unclean restart of the controller may rewind epochs).
const STALE_EPOCHS_BELIEVED: u32 = 5;

#[derive(Debug)]
pub(super) struct Partition {
    pub leader: Option<i32>,
    leader_epoch: i32,
    stale_epochs: u32,
    /// Not on their way, in order: retried batches (sequenced) before new ones; only the last may
    /// be open.
    pub queue: VecDeque<Batch>,
    /// On their way or unanswered, in the order they were sent.
    pub in_flight: VecDeque<Batch>,
    next_order: u64,
    producer_id: i64,
    pub epoch: i16,
    next_sequence: i32,
    /// Where and when the log last proved that it knows our producer id and epoch.
    proof: Option<(ConnId, Micros)>,
    /// Sequence numbers cannot go on: start again from 0 under the next epoch, as soon as nothing
    /// is in flight.
    pub needs_new_epoch: bool,
    /// Nothing is sent until all that is in flight has been answered: retries must not overtake.
    pub draining: bool,
    /// Backoff after a refusal.
    pub retry_at: Micros,
    pub failures: u32,
}

impl Partition {
    /// `epoch` is where the sequence numbers start; see [`super::identity`].
    pub fn new(epoch: i16) -> Self {
        Self {
            leader: None,
            leader_epoch: -1,
            stale_epochs: 0,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_order: 0,
            producer_id: -1,
            epoch,
            next_sequence: 0,
            proof: None,
            needs_new_epoch: false,
            draining: false,
            retry_at: 0,
            failures: 0,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    /// Takes over what a metadata answer or a leader hint says; true when the leader changed.
    pub fn set_leader(&mut self, leader: Option<i32>, epoch: i32, log_is_new: bool) -> bool {
        // KIP-320: answers come from brokers that may lag. −1 means that the broker knows no epoch.
        if !log_is_new && epoch != -1 && epoch < self.leader_epoch {
            self.stale_epochs += 1;
            if self.stale_epochs < STALE_EPOCHS_BELIEVED {
                return false;
            }
        }
        self.stale_epochs = 0;
        self.leader_epoch = epoch;
        let changed = self.leader != leader;
        self.leader = leader;
        if changed && leader.is_some() {
            // A new leader needs no backoff (KAFKA-15415).
            self.retry_at = 0;
        }
        changed
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// Encodes the record into the open batch, or into a new one. Returns by how much the memory
    /// held has grown.
    pub fn push(
        &mut self,
        now: Micros,
        record: &Record<'_>,
        record_len: usize,
        limit: usize,
        spare: usize,
    ) -> usize {
        let fits = self
            .queue
            .back()
            .is_some_and(|batch| batch.is_open() && batch.len() + record_len <= limit);
        let mut held = 0;
        if fits {
            held = self.queue.back().map_or(0, Batch::memory);
        } else {
            self.queue.push_back(Batch::new(now, (self.next_order, 0)));
            self.next_order += 1;
        }
        let batch = self.queue.back_mut().expect("a batch was just found or made");
        batch.push(record, record_len, spare);
        batch.memory() - held
    }

    /// Puts a batch that was on its way back to its place.
    pub fn requeue(&mut self, batch: Batch) {
        let place = self
            .queue
            .iter()
            .position(|other| other.order >= batch.order)
            .unwrap_or(self.queue.len());
        self.queue.insert(place, batch);
    }

    /// Whether every earlier batch has been settled.
    pub fn is_oldest(&self, batch: &Batch) -> bool {
        self.queue.iter().chain(&self.in_flight).all(|other| other.order >= batch.order)
    }

    pub fn take_in_flight(&mut self, request: ConnectionRequest) -> Option<Batch> {
        let index = self.in_flight.iter().position(|batch| batch.request == Some(request))?;
        self.in_flight.remove(index)
    }

    /// Whether the next batch may be sent on this connection now, as far as the partition is
    /// concerned.
    pub fn may_send(&self, now: Micros, conn: ConnId, window: usize, idempotent: bool) -> bool {
        if self.queue.is_empty() || self.draining || self.needs_new_epoch || now < self.retry_at {
            return false;
        }
        // Never on its way to two brokers, or over two connections, at once.
        let elsewhere = |batch: &Batch| batch.request.is_none_or(|request| request.conn != conn);
        if self.in_flight.iter().any(elsewhere) {
            return false;
        }
        // A log without our state accepts any first sequence number (≥ 2.5): if a second batch
        // went along with the first and only the second were accepted, the first could never be
        // written again (KAFKA-14359). So one at a time until a first success.
        let proven = !idempotent
            || self.proof.is_some_and(|(on, at)| on == conn && now < at + PROOF_LIFETIME);
        let window = if proven { window } else { 1 };
        // The broker remembers the last five batches. A retry may have later ones behind it that are
        // written already, so it travels alone; otherwise answers come in order and what is in flight
        // is all that follows the oldest unsettled batch.
        let retrying = self.in_flight.iter().any(|batch| batch.attempts > 1);
        self.in_flight.is_empty() || !retrying && self.in_flight.len() < window
    }

    /// Gives the batch its sequence numbers, if it has none yet.
    pub fn sequence(&mut self, batch: &mut Batch, producer_id: i64) {
        if batch.sequence.is_some() {
            return;
        }
        // Another producer id only once everything under the old one is settled; until then the
        // old one is as good.
        if self.producer_id != producer_id && self.in_flight.is_empty() {
            if self.producer_id != -1 {
                self.epoch = 0;
            }
            self.producer_id = producer_id;
            self.next_sequence = 0;
            self.proof = None;
        }
        batch.sequence = Some(Sequence {
            producer_id: self.producer_id,
            epoch: self.epoch,
            first: self.next_sequence,
        });
        self.next_sequence = add_sequence(self.next_sequence, batch.record_count());
    }

    /// An attempt under the current producer id and epoch was written.
    pub fn succeeded(&mut self, now: Micros, batch: &Batch, conn: ConnId) {
        let current = batch
            .sequence
            .is_some_and(|s| s.producer_id == self.producer_id && s.epoch == self.epoch);
        if current {
            self.proof = Some((conn, now));
        }
        self.failures = 0;
        self.retry_at = 0;
    }

    /// The connection that carried the proof has gone, or the leader refused.
    pub fn forget_proof(&mut self) {
        self.proof = None;
    }

    /// Starts again from sequence 0 under the next epoch; nothing may be in flight. Sequenced
    /// batches of the queue lose their numbers; those that may have been written already are
    /// returned, because they must not be sent again under another epoch.
    pub fn start_new_epoch(&mut self) -> Vec<Batch> {
        debug_assert!(self.in_flight.is_empty());
        self.needs_new_epoch = false;
        self.draining = false;
        self.next_sequence = 0;
        self.proof = None;
        match self.epoch.checked_add(1) {
            Some(epoch) => self.epoch = epoch,
            None => {
                self.producer_id = -1;
                self.epoch = 0;
            }
        }
        let (uncertain, mut kept): (Vec<_>, Vec<_>) =
            self.queue.drain(..).partition(|batch| batch.maybe_persisted);
        kept.iter_mut().for_each(|batch| batch.sequence = None);
        self.queue = kept.into();
        uncertain
    }

    /// Whether this partition has used up the epochs of this producer id.
    pub fn has_exhausted(&self, producer_id: i64) -> bool {
        self.producer_id == producer_id && self.epoch == i16::MAX
    }
}
