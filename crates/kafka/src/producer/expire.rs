//! The delivery timeout: one budget for each record, from append to answer.

use super::broker::BrokerKey;
use super::{PartitionRef, Producer, Timer};
use crate::{Delivery, Failure, FailureKind, Micros};

impl Producer {
    pub(super) fn expire(&mut self, now: Micros, timer: &mut Timer) {
        let timeout = self.config.delivery_timeout;
        let waiting: Vec<usize> = self.waiting.iter().copied().collect();
        for index in waiting {
            let Some(topic) = self.topics.get_mut(index) else { continue };
            // In order of arrival, so the first is the next to expire.
            let mut expired = Vec::new();
            while let Some(first) = topic.pending.front() {
                let deadline = first.created.saturating_add(timeout);
                if now < deadline {
                    timer.wake_at(deadline);
                    break;
                }
                expired.extend(topic.pending.pop_front());
            }
            if topic.pending.is_empty() {
                self.waiting.remove(&index);
            }
            if !expired.is_empty() {
                let failure = self.timeout_failure(index);
                self.fail_records(index, &expired, false, &failure);
            }
        }
        let active: Vec<PartitionRef> = self.active.iter().copied().collect();
        for at in active {
            self.expire_partition(now, at, timer);
        }
    }

    fn expire_partition(&mut self, now: Micros, at: PartitionRef, timer: &mut Timer) {
        let timeout = self.config.delivery_timeout;
        // On their way: what comes of them is unknown, and stays so for the caller. The batch itself
        // stays until the connection has let go of it and its answer tells where the log stands.
        let mut uncertain = Vec::new();
        let mut expired = Vec::new();
        let Some(partition) = self.partition_mut(at) else { return };
        for batch in partition.in_flight.iter_mut().filter(|batch| !batch.tokens.is_empty()) {
            let deadline = batch.created.saturating_add(timeout);
            if now < deadline {
                timer.wake_at(deadline);
                break;
            }
            uncertain.append(&mut batch.tokens);
        }
        while let Some(first) = partition.queue.front() {
            let deadline = first.created.saturating_add(timeout);
            if now < deadline {
                timer.wake_at(deadline);
                break;
            }
            expired.extend(partition.queue.pop_front());
        }
        if uncertain.is_empty() && expired.is_empty() {
            return;
        }
        let failure = self.timeout_failure(at.0);
        self.complete_tokens(at, uncertain, Delivery::Ambiguous(failure.clone()));
        for batch in expired {
            self.leaves_a_gap(at, &batch);
            self.fail(at, batch, false, failure.clone());
        }
        self.rest(at);
    }

    fn timeout_failure(&self, index: usize) -> Failure {
        if self.topics.get(index).is_some_and(|topic| topic.unknown.is_some()) {
            return Failure::new(FailureKind::UnknownTopic, "topic does not exist");
        }
        let cause = match &self.failing {
            Some((_, reason)) => reason.to_string(),
            None => self.leader_error(index).unwrap_or_else(|| self.what_is_awaited()),
        };
        let message = format!("not delivered in time: {cause}");
        Failure::new(FailureKind::DeliveryTimeout, message)
    }

    /// Why a broker that leads partitions of this topic cannot be used, though others can: a name that
    /// it advertises and that does not resolve, for one.
    fn leader_error(&self, index: usize) -> Option<String> {
        let leaders = self.topics.get(index)?.partitions.iter().filter_map(|p| p.leader);
        let mut brokers = leaders.filter_map(|node| self.brokers.get(BrokerKey::Node(node)));
        brokers.find_map(|broker| broker.last_error.as_ref().map(|error| error.to_string()))
    }

    /// What keeps records from being delivered while nothing has failed yet.
    fn what_is_awaited(&self) -> String {
        let unresolved = self.brokers.table.iter().find(|(_, broker)| broker.query.is_some());
        if let Some((key, _)) = unresolved {
            return format!("{}: the name has not been resolved yet", self.brokers.name(*key));
        }
        let silent = self.connections.values().find(|c| c.negotiated().is_none());
        if let Some(connection) = silent {
            return format!("{}: no connection yet", self.brokers.name(connection.broker));
        }
        let busy = self.connections.values().find(|c| !c.in_flight.is_empty());
        match busy {
            Some(connection) => {
                format!("{}: no answer yet", self.brokers.name(connection.broker))
            }
            None => "no broker has accepted it".into(),
        }
    }
}
