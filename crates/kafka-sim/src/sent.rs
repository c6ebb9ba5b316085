//! What the producer has put on the wire, seen from outside: sequence numbers (I6), the in-flight
//! window and the first-batch gate (I7), requests (I8).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kafka::ConnId;

use crate::batch::{Batch, add_sequence};
use crate::cluster::PartitionRef;
use crate::era::Era;
use crate::ledger::Ledger;
use crate::violation::Invariant;

/// Producer id and epoch.
type Identity = (i64, i16);

#[derive(Debug)]
struct Flight {
    conn: ConnId,
    correlation_id: i32,
    batch: Rc<Batch>,
}

/// A batch that got its numbers.
#[derive(Debug)]
struct Numbered {
    /// The producer knows what became of it.
    settled: bool,
    token: u64,
}

#[derive(Debug, Default)]
struct PartitionSent {
    in_flight: Vec<Flight>,
    /// Since when the log is known to know us: connection and identity of the last success.
    proofs: BTreeSet<(ConnId, Identity)>,
    numbers: BTreeMap<Identity, BTreeMap<i32, u64>>,
    /// First sequence to count; an entry goes when the broker refuses the batch as too large.
    boundaries: BTreeMap<(Identity, i32), i32>,
    /// By first sequence, under the latest identity: from the oldest unsettled batch on.
    window: BTreeMap<i32, Numbered>,
    window_of: Option<Identity>,
}

#[derive(Debug)]
pub struct Sent {
    partitions: BTreeMap<PartitionRef, PartitionSent>,
    max_in_flight: usize,
    max_request_size: usize,
    pub batches: u64,
}

type Check = Result<(), (Invariant, String)>;

impl Sent {
    pub fn new(config: &kafka::Config) -> Self {
        Self {
            partitions: BTreeMap::new(),
            max_in_flight: config.max_in_flight,
            max_request_size: config.max_request_size,
            batches: 0,
        }
    }

    /// A whole Produce request has left. `answered` is false with `acks=0`.
    pub fn request(
        &mut self,
        (conn, correlation_id): (ConnId, i32),
        era: &Era,
        batches: &[(PartitionRef, Rc<Batch>)],
        size: usize,
        answered: bool,
        ledger: &Ledger,
    ) -> Check {
        let distinct: BTreeSet<_> = batches.iter().map(|(at, _)| at).collect();
        if distinct.len() < batches.len() {
            return Err((Invariant::I8, "a partition twice in one request".into()));
        }
        if batches.len() > 1 && size > self.max_request_size {
            let limit = self.max_request_size;
            let what =
                format!("{} batches in a request of {size} bytes, limit {limit}", batches.len());
            return Err((Invariant::I8, what));
        }
        for (at, batch) in batches {
            self.batches += 1;
            let partition = self.partitions.entry(*at).or_default();
            let context = |(invariant, what): (Invariant, String)| {
                let Batch { producer_id, epoch, first_sequence, .. } = **batch;
                let count = batch.count();
                (
                    invariant,
                    format!(
                        "{at:?} pid {producer_id} epoch {epoch} sequence {first_sequence}+{count} on \
                     {conn:?}: {what}"
                    ),
                )
            };
            partition
                .check_window(conn, era, batch, self.max_in_flight, ledger)
                .map_err(context)?;
            partition.check_numbers(batch).map_err(context)?;
            if answered {
                partition.in_flight.push(Flight { conn, correlation_id, batch: batch.clone() });
            }
        }
        Ok(())
    }

    /// The producer has got the answer.
    pub fn answer(&mut self, conn: ConnId, correlation_id: i32, at: PartitionRef, code: i16) {
        let Some(partition) = self.partitions.get_mut(&at) else { return };
        let ours = |f: &Flight| f.conn == conn && f.correlation_id == correlation_id;
        let Some(index) = partition.in_flight.iter().position(ours) else { return };
        let flight = partition.in_flight.remove(index);
        partition.answered(conn, &flight.batch, code);
    }

    /// The producer knows that the connection has ended.
    pub fn connection_ended(&mut self, conn: ConnId) {
        for partition in self.partitions.values_mut() {
            partition.in_flight.retain(|flight| flight.conn != conn);
            partition.proofs.retain(|(on, _)| *on != conn);
        }
    }

    /// Where a single record would leave at once: nothing is on its way, and this connection has
    /// carried a success.
    pub fn proven_connection(&self, at: PartitionRef) -> Option<ConnId> {
        let partition = self.partitions.get(&at).filter(|p| p.in_flight.is_empty())?;
        partition.proofs.last().map(|(conn, _)| *conn)
    }
}

fn identity(batch: &Batch) -> Identity {
    (batch.producer_id, batch.epoch)
}

impl PartitionSent {
    fn check_window(
        &mut self,
        conn: ConnId,
        era: &Era,
        batch: &Batch,
        limit: usize,
        ledger: &Ledger,
    ) -> Check {
        if let Some(other) = self.in_flight.iter().find(|flight| flight.conn != conn) {
            return Err((Invariant::I7, format!("also in flight on {:?}", other.conn)));
        }
        // Produce up to 4 is 0.11, which remembers one batch per producer.
        let limit = if era.produce.1 <= 4 && batch.is_idempotent() { 1 } else { limit };
        let count = self.in_flight.len() + 1;
        if count > limit {
            return Err((Invariant::I7, format!("{count} batches in flight, limit {limit}")));
        }
        if !batch.is_idempotent() {
            return Ok(());
        }
        if count > 1 && !self.proofs.contains(&(conn, identity(batch))) {
            return Err((Invariant::I7, "sent beside another before a first success".into()));
        }
        // Another epoch has its own window.
        if self.window_of != Some(identity(batch)) {
            self.window_of = Some(identity(batch));
            self.window.clear();
        }
        let first = batch.first_sequence;
        let token = batch.records[0].token;
        self.window.entry(first).or_insert(Numbered { settled: false, token });
        // A broker remembers the last batches only: the window counts from the oldest whose fate
        // is open, whatever became of those after it.
        let over = |sent: &Numbered| sent.settled || ledger.is_done(sent.token);
        while let Some(oldest) = self.window.first_entry()
            && *oldest.key() != first
            && over(oldest.get())
        {
            oldest.remove();
        }
        let before = self.window.range(..first).count();
        if before + 1 > limit {
            let what = format!("{before} batches since the oldest open one, limit {limit}");
            return Err((Invariant::I7, what));
        }
        Ok(())
    }

    fn check_numbers(&mut self, batch: &Batch) -> Check {
        if !batch.is_idempotent() {
            return Ok(());
        }
        let identity = identity(batch);
        let numbers = self.numbers.entry(identity).or_default();
        for (index, record) in batch.records.iter().enumerate() {
            let sequence = add_sequence(batch.first_sequence, index as i32);
            let known = *numbers.entry(sequence).or_insert(record.token);
            if known != record.token {
                let what = format!("sequence {sequence} was token {known}, is {}", record.token);
                return Err((Invariant::I6, what));
            }
        }
        let key = (identity, batch.first_sequence);
        let count = *self.boundaries.entry(key).or_insert(batch.count());
        if count != batch.count() {
            return Err((Invariant::I6, format!("the batch had {count} records before")));
        }
        Ok(())
    }

    fn answered(&mut self, conn: ConnId, batch: &Batch, code: i16) {
        let identity = identity(batch);
        match code {
            0 => {
                self.proofs.insert((conn, identity));
            }
            // Definitely not written: may be cut anew.
            10 | 18 | 32 | 87 => {
                self.boundaries.remove(&(identity, batch.first_sequence));
            }
            _ => return,
        }
        if self.window_of != Some(identity) {
            return;
        }
        match self.window.get_mut(&batch.first_sequence) {
            // The parts are numbered anew.
            Some(_) if code != 0 => drop(self.window.remove(&batch.first_sequence)),
            Some(numbered) => numbered.settled = true,
            None => {}
        }
    }
}
