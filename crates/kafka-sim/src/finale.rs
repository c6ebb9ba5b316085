//! The end of a run: heal everything, require that everything works again, close.

use kafka::{Acks, MILLISECOND, Micros, SECOND};

use crate::ledger::Outcome;
use crate::plan::{Faults, Mode, SuddenEnd};
use crate::violation::Invariant;
use crate::workload::Draft;
use crate::world::{Event, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Chaos,
    /// Healed; what is outstanding must end.
    Settling {
        deadline: Micros,
    },
    /// Long enough for every backoff to pass.
    Resting {
        until: Micros,
        round: u32,
    },
    /// One record to each partition. The first rounds may still meet dead connections; the last one
    /// must be written.
    Probing {
        round: u32,
        next: usize,
        first_token: u64,
        deadline: Micros,
    },
    /// Nothing to do; then one record, which must leave at once.
    Idle {
        until: Micros,
    },
    LastRecord {
        token: Option<u64>,
        deadline: Micros,
    },
    Closing {
        deadline: Micros,
    },
    Over,
}

const TICK: Micros = 20 * MILLISECOND;

impl World {
    pub fn next_phase(&mut self) {
        let now = self.now;
        self.phase = match self.phase {
            Phase::Chaos => self.end_of_chaos(),
            Phase::Settling { .. } if self.ledger.outstanding == 0 => self.rest(1),
            Phase::Settling { deadline } if now > deadline => {
                let count = self.ledger.outstanding;
                let what = format!("{count} records have not ended after the cluster healed");
                return self.violate(Invariant::I11, what);
            }
            Phase::Resting { until, round } if now >= until => {
                let first_token = self.ledger.next_token();
                let deadline = now + 2 * self.plan.config.delivery_timeout + 10 * SECOND;
                Phase::Probing { round, next: 0, first_token, deadline }
            }
            Phase::Probing { round, next, first_token, deadline } => {
                self.probe(round, next, first_token, deadline)
            }
            Phase::Idle { until } if now >= until => self.last_record(),
            Phase::LastRecord { token, .. } if self.ledger.outstanding == 0 => {
                self.must_be_written(token.into_iter());
                self.begin_close(SuddenEnd::Close)
            }
            Phase::LastRecord { deadline, .. } if now > deadline => {
                return self.violate(Invariant::I11, "the last record has not ended".into());
            }
            Phase::Closing { deadline } if now >= deadline => self.closed(),
            phase => phase,
        };
        if self.phase != Phase::Over {
            let next = (now + TICK).max(self.silent_until);
            self.queue.push(next, Event::Phase);
        }
    }

    fn end_of_chaos(&mut self) -> Phase {
        if self.now < self.silent_until {
            return Phase::Chaos;
        }
        if let Some(end) = self.plan.sudden_end {
            return self.begin_close(end);
        }
        if matches!(self.plan.mode, Mode::Outage(_)) {
            let endpoints = self.cluster.brokers.len() + self.plan.config.bootstrap.len();
            let topics = self.plan.topics.len();
            let result = self.traffic.check(&self.plan.config, self.now, 2 * endpoints, topics);
            self.check(result.map_err(|what| (Invariant::I12, what)));
        }
        self.heal();
        let awake = self.now.max(self.sleeping_until);
        let deadline = awake + self.plan.config.delivery_timeout + 2 * SECOND;
        Phase::Settling { deadline }
    }

    fn heal(&mut self) {
        self.trace(|| "HEAL".into());
        self.outage = None;
        self.plan.faults = Faults::default();
        for broker in 0..self.cluster.brokers.len() {
            self.start(broker);
            let frozen = &mut self.cluster.brokers[broker].frozen_until;
            *frozen = (*frozen).min(self.now);
        }
        for at in self.cluster.partitions() {
            let partition = self.cluster.partition_mut(at);
            partition.below_min_isr = false;
            partition.replication_stalled_until = 0;
            let (end, epoch) = (partition.log.end, partition.leader_epoch);
            self.schedule_replication(at, end, epoch);
        }
        // Requests of frozen brokers, and those that waited for replicas.
        let conns: Vec<_> = self.links.keys().copied().collect();
        for conn in conns {
            self.queue.push(self.now + 1, Event::Serve { conn });
            // With acks=0 nobody would ever notice.
            if self.plan.config.acks == Acks::None && self.links[&conn].is_half_open() {
                self.reset(conn, self.now + 1);
            }
        }
        self.publish();
    }

    fn rest(&self, round: u32) -> Phase {
        let config = &self.plan.config;
        let pause = config.request_timeout
            + config.connect_timeout
            + 2 * config.reconnect_backoff.max
            + 4 * config.retry_backoff.max
            + 3 * SECOND;
        Phase::Resting { until: self.now + pause, round }
    }

    /// Every partition that exists, and each topic without a wish.
    fn probes(&self) -> Vec<Draft> {
        let mut probes = Vec::new();
        for (index, topic) in self.cluster.topics.iter().enumerate().filter(|(_, t)| t.exists) {
            probes.push(Draft::probe(index, None));
            let each = 0..topic.partitions.len() as i32;
            probes.extend(each.map(|partition| Draft::probe(index, Some(partition))));
        }
        probes
    }

    fn probe(&mut self, round: u32, mut next: usize, first_token: u64, deadline: Micros) -> Phase {
        let probes = self.probes();
        while let Some(probe) = probes.get(next) {
            match self.append(std::slice::from_ref(probe)) {
                Ok(()) => next += 1,
                Err(error) if self.now > deadline => {
                    let what = format!("healed, but {probe:?} is refused: {error}");
                    self.violate(Invariant::I11, what);
                    return Phase::Over;
                }
                Err(_) => break,
            }
            self.pump();
        }
        if next < probes.len() || self.ledger.outstanding > 0 {
            if self.now > deadline {
                self.violate(Invariant::I11, "healed, but probes do not end".into());
            }
            return Phase::Probing { round, next, first_token, deadline };
        }
        // With acks=0 each stale leader costs a record, and what went behind it on its connection.
        let rounds = if self.plan.config.acks == Acks::None { 4 } else { 2 };
        if round < rounds {
            return self.rest(round + 1);
        }
        self.must_be_written(first_token..self.ledger.next_token());
        Phase::Idle { until: self.now + self.plan.config.linger + 10 * MILLISECOND }
    }

    fn must_be_written(&mut self, tokens: impl Iterator<Item = u64>) {
        for token in tokens {
            let outcome = self.ledger.get(token).and_then(|e| e.done.as_ref()).map(|d| &d.outcome);
            if !matches!(outcome, Some(Outcome::Written { .. })) {
                let what = format!("healed, but record {token} ended as {outcome:?}");
                return self.violate(Invariant::I11, what);
            }
            self.owed.insert(token);
        }
    }

    fn last_record(&mut self) -> Phase {
        let deadline = self.now + 2 * self.plan.config.delivery_timeout;
        let usable = |at: &crate::cluster::PartitionRef| {
            self.sent.proven_connection(*at).is_some_and(|conn| {
                let link = &self.links[&conn];
                link.client_open && self.cluster.partition(*at).leader == Some(link.broker)
            })
        };
        let ready = self.cluster.partitions().into_iter().find(usable);
        let Some((topic, partition)) = ready.filter(|_| self.plan.config.acks != Acks::None) else {
            return Phase::LastRecord { token: None, deadline };
        };
        let (token, before) = (self.ledger.next_token(), self.sent.batches);
        let result = self.append(&[Draft::probe(topic, Some(partition as i32))]);
        self.pump();
        if self.sent.batches == before {
            let what = format!("idle, and a record for {topic}/{partition} waits ({result:?})");
            self.violate(Invariant::I15, what);
        }
        Phase::LastRecord { token: Some(token), deadline }
    }

    fn begin_close(&mut self, end: SuddenEnd) -> Phase {
        let now = self.now;
        self.trace(|| format!("{end:?}"));
        let deadline = match end {
            SuddenEnd::Close => now + self.plan.config.delivery_timeout / 2,
            SuddenEnd::Abort => now,
        };
        match end {
            SuddenEnd::Close => self.producer.close(now, deadline),
            SuddenEnd::Abort => self.producer.abort(now),
        }
        self.pump();
        Phase::Closing { deadline: deadline.max(now + self.slept) + SECOND }
    }

    fn closed(&mut self) -> Phase {
        let (outstanding, memory) = (self.ledger.outstanding, self.producer.memory_used());
        let open: Vec<_> =
            self.links.iter().filter(|(_, l)| l.client_open).map(|(c, _)| *c).collect();
        if outstanding > 0 {
            self.violate(Invariant::I1, format!("closed with {outstanding} records not ended"));
        } else if memory > 0 {
            self.violate(Invariant::I10, format!("closed, and {memory} bytes are held"));
        } else if !open.is_empty() {
            self.violate(Invariant::I11, format!("closed, and {open:?} are open"));
        }
        Phase::Over
    }
}
