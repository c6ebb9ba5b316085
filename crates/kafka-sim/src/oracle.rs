//! The verdict over the logs, after the last zombie request has been served.

use std::collections::BTreeMap;

use kafka::{Acks, FailureKind};

use crate::cluster::PartitionRef;
use crate::ledger::Outcome;
use crate::plan::Mode;
use crate::violation::Invariant;
use crate::world::World;

impl World {
    pub fn check_logs(&mut self) {
        let mut places: BTreeMap<u64, Vec<(PartitionRef, i64)>> = BTreeMap::new();
        for at in self.cluster.partitions() {
            for entry in &self.cluster.partition(at).log.entries {
                for (mark, offset) in entry.batch.records.iter().zip(entry.base_offset..) {
                    places.entry(mark.token).or_default().push((at, offset));
                }
            }
        }
        let result = self
            .check_copies(&places)
            .and_then(|()| self.check_outcomes(&places))
            .and_then(|()| self.check_order());
        self.check(result);
    }

    fn check_copies(
        &self,
        places: &BTreeMap<u64, Vec<(PartitionRef, i64)>>,
    ) -> Result<(), (Invariant, String)> {
        if !self.plan.idempotent() {
            return Ok(());
        }
        for (token, copies) in places {
            if copies.len() > 1 {
                return Err((Invariant::I4, format!("record {token} is at {copies:?}")));
            }
        }
        Ok(())
    }

    fn check_outcomes(
        &self,
        places: &BTreeMap<u64, Vec<(PartitionRef, i64)>>,
    ) -> Result<(), (Invariant, String)> {
        let cut = |at| self.cluster.partition(at).log.truncations > 0;
        let truncated = self.cluster.partitions().into_iter().any(cut);
        let durable = match self.plan.config.acks {
            Acks::All => true,
            Acks::Leader => !truncated,
            Acks::None => self.plan.mode == Mode::Calm && !self.has_small_limits(),
        };
        for (token, entry) in (0..).zip(&self.ledger.entries) {
            let Some(done) = &entry.done else {
                return Err((Invariant::I1, format!("record {token} has not ended")));
            };
            let copies = places.get(&token).map_or(&[][..], Vec::as_slice);
            match &done.outcome {
                Outcome::Written { offset } => {
                    if !durable && !self.owed.contains(&token) {
                        continue;
                    }
                    let reported = |(at, place): &&(PartitionRef, i64)| {
                        (at.0, Some(at.1 as i32)) == (entry.topic, done.partition)
                            && offset.is_none_or(|offset| offset == *place)
                    };
                    if copies.iter().find(reported).is_none() {
                        let what = format!("record {token} is at {copies:?}, reported {done:?}");
                        return Err((Invariant::I2, what));
                    }
                }
                Outcome::NotWritten(_) | Outcome::Rejected(_) => {
                    if self.appended.contains(&token) {
                        let what = format!("record {token} was appended, reported {done:?}");
                        return Err((Invariant::I3, what));
                    }
                }
                Outcome::Ambiguous(_) => {}
            }
            self.check_calm(token, &done.outcome)?;
        }
        Ok(())
    }

    fn has_small_limits(&self) -> bool {
        self.plan.topics.iter().any(|topic| topic.max_message_bytes < 1_000_000)
    }

    /// Without faults nothing fails but what the caller did wrong.
    fn check_calm(&self, token: u64, outcome: &Outcome) -> Result<(), (Invariant, String)> {
        let small = self.has_small_limits();
        let fault = match outcome {
            _ if self.plan.mode != Mode::Calm => false,
            // All that a broker can do with what it refuses is to close the connection.
            _ if small && self.plan.config.acks == Acks::None => false,
            Outcome::Written { .. } => false,
            Outcome::Ambiguous(_) => !small,
            Outcome::NotWritten(failure) | Outcome::Rejected(failure) => match failure.kind {
                FailureKind::Cancelled | FailureKind::UnknownPartition => false,
                // Splitting to such small batches may take longer than a record may wait.
                FailureKind::Broker(_) | FailureKind::DeliveryTimeout => !small,
                _ => true,
            },
        };
        if fault {
            return Err((Invariant::I11, format!("in a calm cluster record {token}: {outcome:?}")));
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), (Invariant, String)> {
        if !self.plan.idempotent() {
            return Ok(());
        }
        for at in self.cluster.partitions() {
            let mut last = None;
            for entry in &self.cluster.partition(at).log.entries {
                for mark in &entry.batch.records {
                    let done = self.ledger.get(mark.token).and_then(|e| e.done.as_ref());
                    if !done.is_some_and(|d| matches!(d.outcome, Outcome::Written { .. })) {
                        continue;
                    }
                    if last.is_some_and(|last| last > mark.token) {
                        let what = format!("{at:?}: record {} after {last:?}", mark.token);
                        return Err((Invariant::I5, what));
                    }
                    last = Some(mark.token);
                }
            }
        }
        Ok(())
    }
}
