//! The end: delivering what is held, or giving it up.

use super::connection::RequestKind;
use super::{Producer, Timer};
use crate::{ConnId, Failure, FailureKind, Micros, Output};

impl Producer {
    pub(super) fn begin_close(&mut self, now: Micros, deadline: Micros) {
        let deadline = deadline.max(now);
        self.closing = Some(self.closing.map_or(deadline, |other| other.min(deadline)));
    }

    pub(super) fn check_close(&mut self, now: Micros, timer: &mut Timer) {
        let Some(deadline) = self.closing else { return };
        if self.outstanding == 0 || now >= deadline {
            return self.give_up();
        }
        timer.wake_at(deadline);
    }

    /// Completes everything and closes all connections.
    pub(super) fn give_up(&mut self) {
        let failure = Failure::new(FailureKind::Closed, "the worker exits");
        let waiting: Vec<usize> = self.waiting.iter().copied().collect();
        for index in waiting {
            self.fail_pending(index, false, &failure);
        }
        let connections: Vec<ConnId> = self.connections.keys().copied().collect();
        for conn in connections {
            let Some(mut connection) = self.connections.remove(&conn) else { continue };
            self.outputs.push_back(Output::Close { conn });
            if let Some(broker) = self.brokers.get_mut(connection.broker) {
                broker.conn = None;
            }
            for request in std::mem::take(&mut connection.in_flight) {
                let left = connection.has_left(&request);
                let RequestKind::Produce { partitions, .. } = request.kind else { continue };
                for sent in partitions {
                    let at = (sent.topic, sent.index as usize);
                    let Some(partition) = self.partition_mut(at) else { continue };
                    let Some(mut batch) = partition.take_in_flight(request.id) else { continue };
                    batch.maybe_persisted |= left;
                    self.fail(at, batch, false, failure.clone());
                }
            }
        }
        self.lookup.cut_off();
        self.identity.cut_off();
        let active: Vec<_> = self.active.iter().copied().collect();
        for at in active {
            self.fail_queue(at, &failure);
        }
    }
}
