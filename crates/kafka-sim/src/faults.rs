//! What goes wrong by itself: elections, crashes, freezes, lag.

use std::rc::Rc;

use kafka::{MILLISECOND, Micros, SECOND};

use crate::cluster::View;
use crate::finale::Phase;
use crate::network::Link;
use crate::plan::Birth;
use crate::world::{Event, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    MoveLeader,
    Crash,
    Start(usize),
    Freeze,
    LoseIsr,
    RegainIsr(crate::cluster::PartitionRef),
    StallReplication,
    Grow,
    /// A long silence, at whose end logs have forgotten their producers.
    Silence,
    ForgetProducers,
    SleepClient,
    IdleClose,
    /// A topic appears.
    Create(usize),
}

impl World {
    pub fn plan_faults(&mut self) {
        for fault in [
            Fault::MoveLeader,
            Fault::Crash,
            Fault::Freeze,
            Fault::LoseIsr,
            Fault::StallReplication,
            Fault::Grow,
            Fault::Silence,
            Fault::SleepClient,
            Fault::IdleClose,
        ] {
            self.plan_next(fault);
        }
        for index in 0..self.plan.topics.len() {
            if self.plan.topics[index].birth == Birth::Later {
                let at = self.now + self.fate.below(self.plan.chaos);
                self.queue.push(at, Event::Fault(Fault::Create(index)));
            }
        }
    }

    fn plan_next(&mut self, fault: Fault) {
        let faults = &self.plan.faults;
        let mean = match fault {
            Fault::MoveLeader => faults.leader_move,
            Fault::Crash => faults.crash,
            Fault::Freeze => faults.freeze,
            Fault::LoseIsr => faults.isr_loss,
            Fault::StallReplication => faults.replication_stall,
            Fault::Grow => faults.grow,
            Fault::Silence => faults.silence,
            Fault::SleepClient => faults.client_sleep,
            Fault::IdleClose => faults.idle_close,
            Fault::Start(_) | Fault::RegainIsr(_) | Fault::Create(_) | Fault::ForgetProducers => 0,
        };
        if mean > 0 {
            let at = self.now + self.fate.interval(mean);
            self.queue.push(at, Event::Fault(fault));
        }
    }

    pub fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Start(broker) => return self.start(broker),
            Fault::RegainIsr(at) => {
                self.cluster.partition_mut(at).below_min_isr = false;
                return;
            }
            Fault::Create(index) => return self.create(index),
            Fault::ForgetProducers => return self.forget_producers(),
            _ if self.phase != Phase::Chaos => return,
            _ => {}
        }
        if self.now < self.silent_until {
            return self.queue.push(self.silent_until, Event::Fault(fault));
        }
        self.plan_next(fault);
        self.trace(|| format!("fault {fault:?}"));
        let duration = self.fate.magnitude(10 * MILLISECOND, 10 * SECOND);
        let broker = self.fate.index(self.cluster.brokers.len());
        let partitions = self.cluster.partitions();
        let any = (!partitions.is_empty()).then(|| partitions[self.fate.index(partitions.len())]);
        match (fault, any) {
            (Fault::MoveLeader, Some(at)) => self.move_leader(at),
            (Fault::Crash, _) => self.crash(broker, duration),
            (Fault::Freeze, _) => self.freeze(broker, duration),
            (Fault::LoseIsr, Some(at)) => {
                self.cluster.partition_mut(at).below_min_isr = true;
                self.queue.push(self.now + duration, Event::Fault(Fault::RegainIsr(at)));
            }
            (Fault::StallReplication, Some(at)) => {
                self.cluster.partition_mut(at).replication_stalled_until = self.now + duration;
            }
            (Fault::Grow, Some((topic, _))) => {
                self.cluster.topics[topic].plan.partitions += 1;
                self.create(topic);
            }
            (Fault::Silence, _) => self.fall_silent(),
            (Fault::IdleClose, _) => self.close_an_idle_connection(),
            (Fault::SleepClient, _) => {
                let until = self.sleeping_until.max(self.now + duration);
                self.slept += until - self.sleeping_until.max(self.now);
                self.sleeping_until = until;
            }
            _ => {}
        }
    }

    fn create(&mut self, index: usize) {
        self.cluster.create(index);
        self.catch_up();
        self.publish();
    }

    /// After an election the followers fetch from the new leader.
    fn catch_up(&mut self) {
        for at in self.cluster.partitions() {
            let partition = self.cluster.partition(at);
            let (end, epoch) = (partition.log.end, partition.leader_epoch);
            if partition.log.high_watermark < end {
                self.schedule_replication(at, end, epoch);
            }
        }
    }

    /// A clean election: the new leader has everything that was acknowledged.
    fn move_leader(&mut self, at: crate::cluster::PartitionRef) {
        let up: Vec<usize> =
            (0..self.cluster.brokers.len()).filter(|b| self.cluster.brokers[*b].up).collect();
        let next = if up.is_empty() { None } else { Some(up[self.fate.index(up.len())]) };
        self.elect(at, next);
        self.publish();
        self.look_at_all_waiting();
    }

    fn elect(&mut self, at: crate::cluster::PartitionRef, leader: Option<usize>) {
        let keep = self.fate.chance(0.5);
        let partition = self.cluster.partition_mut(at);
        partition.leader = leader;
        partition.leader_epoch += 1;
        let (low, high) = (partition.log.high_watermark, partition.log.end);
        let cut = if keep { high } else { self.fate.between(low as u64, high as u64) as i64 };
        let partition = self.cluster.partition_mut(at);
        partition.log.truncate(cut);
        let (end, epoch) = (partition.log.end, partition.leader_epoch);
        // The followers of the new leader catch up with what it kept.
        self.schedule_replication(at, end, epoch);
    }

    fn crash(&mut self, broker: usize, duration: Micros) {
        if !self.cluster.brokers[broker].up {
            return;
        }
        let silent = self.fate.chance(self.plan.faults.silent_crash);
        let known = &mut self.cluster.brokers[broker];
        known.up = false;
        known.incarnation += 1;
        known.frozen_until = 0;
        let ours = self.links.iter().filter(|(_, l)| l.broker == broker && l.server_open);
        let conns: Vec<_> = ours.map(|(conn, _)| *conn).collect();
        for conn in conns {
            let link = self.link(conn);
            link.server_open = false;
            link.frames.clear();
            if !silent {
                let delay = self.net.between(1, self.plan.latency);
                let reason = "connection reset";
                self.queue.push(self.now + delay, Event::ClosedAtClient { conn, reason });
            }
        }
        let up: Vec<usize> =
            (0..self.cluster.brokers.len()).filter(|b| self.cluster.brokers[*b].up).collect();
        for at in self.cluster.partitions() {
            if self.cluster.partition(at).leader == Some(broker) {
                let next = if up.is_empty() { None } else { Some(up[self.fate.index(up.len())]) };
                self.elect(at, next);
            }
        }
        self.publish();
        self.look_at_all_waiting();
        self.queue.push(self.now + duration, Event::Fault(Fault::Start(broker)));
    }

    pub fn start(&mut self, broker: usize) {
        if self.cluster.brokers[broker].up {
            return;
        }
        let changed = self.fate.chance(self.plan.faults.other_version);
        let era = *self.fate.pick(&self.plan.other_eras);
        let moved = self.fate.chance(self.plan.faults.other_address);
        let amnesia = self.fate.chance(self.plan.faults.amnesia);
        let known = &mut self.cluster.brokers[broker];
        known.up = true;
        known.moves += u8::from(moved);
        if changed {
            known.era = era;
        }
        self.trace(|| format!("broker {broker} up as {}", era.name));
        self.cluster.elect();
        self.catch_up();
        if amnesia {
            // Its metadata cache is empty until the controller has talked to it.
            let view = self.cluster.snapshot();
            let view = View { version: 0, brokers: view.brokers.clone(), ..View::default() };
            self.cluster.brokers[broker].view = Rc::new(view);
        }
        self.publish();
    }

    fn freeze(&mut self, broker: usize, duration: Micros) {
        let known = &mut self.cluster.brokers[broker];
        known.frozen_until = self.now + duration;
    }

    /// A request may be on its way at just that time.
    fn close_an_idle_connection(&mut self) {
        let idle = |link: &Link| link.server_open && link.established && link.is_quiet();
        let conns: Vec<_> =
            self.links.iter().filter(|(_, link)| idle(link)).map(|(conn, _)| *conn).collect();
        if !conns.is_empty() {
            let conn = *self.fate.pick(&conns);
            self.hang_up(conn);
        }
    }

    /// Nobody produces for longer than the producer trusts that a log remembers it.
    fn fall_silent(&mut self) {
        const LONG: Micros = 601 * SECOND;
        if self.is_quiet() {
            self.silent_until = self.now + LONG;
            self.queue.push(self.silent_until - 1, Event::Fault(Fault::ForgetProducers));
        }
    }

    fn is_quiet(&self) -> bool {
        self.ledger.outstanding == 0 && self.links.values().all(|link| link.is_quiet())
    }

    /// `producer.id.expiration.ms` has passed: only while nothing is under way.
    fn forget_producers(&mut self) {
        if !self.is_quiet() {
            return;
        }
        self.trace(|| "logs forget their producers".into());
        for at in self.cluster.partitions() {
            self.cluster.partition_mut(at).log.forget_producers();
        }
    }

    /// Tells all brokers how things are now; each hears of it at its own time.
    pub fn publish(&mut self) {
        let view = self.cluster.snapshot();
        for broker in 0..self.cluster.brokers.len() {
            let lag = match self.plan.faults.view_lag {
                0 => self.fate.between(1, MILLISECOND),
                most => self.fate.magnitude(1, most),
            };
            let incarnation = self.cluster.brokers[broker].incarnation;
            let view = view.clone();
            self.queue.push(self.now + lag, Event::Heard { broker, incarnation, view });
        }
    }

    pub fn heard(&mut self, broker: usize, incarnation: u64, view: Rc<View>) {
        let known = &mut self.cluster.brokers[broker];
        if known.incarnation == incarnation && view.version > known.view.version {
            known.view = view;
        }
    }
}
