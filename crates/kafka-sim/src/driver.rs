//! What nginx does for the producer: connections, names, timers; and the watch over its outputs.

use std::net::SocketAddr;

use bytes::Buf;
use kafka::{Acks, ConnId, Input, MILLISECOND, Micros, Output, QueryId, SECOND};

use crate::network::Link;
use crate::plan::Outage;
use crate::violation::Invariant;
use crate::wire::{self, Body, TopicRef};
use crate::world::{Event, World};

impl World {
    /// Polls until nothing is left, writes what there is to write, and sets the timer.
    pub fn pump(&mut self) {
        self.drain_outputs();
        while self.violation.is_none() {
            let Some(conn) = self.transmits.pop() else { break };
            self.write(conn);
        }
        self.check_memory();
        self.check_without_answer();
        self.set_timer();
    }

    /// With `acks=0` a record is done when it has left and all before it has been answered.
    fn check_without_answer(&mut self) {
        if self.plan.config.acks != Acks::None {
            return;
        }
        let mut forgotten = None;
        for link in self.links.values_mut().filter(|link| link.unanswered == 0) {
            let open = |token: &u64| !self.ledger.is_done(*token);
            forgotten = forgotten.or(link.without_answer.drain(..).find(open));
        }
        if let Some(token) = forgotten {
            self.violate(
                Invariant::I11,
                format!("acks=0: record {token} has left, but is not done"),
            );
        }
    }

    pub fn drain_outputs(&mut self) {
        /// One event may complete many batches and start many requests, but not this much.
        const MAX_OUTPUTS: u32 = 20_000;
        let mut outputs = 0;
        while let Some(output) = self.producer.poll(self.now) {
            outputs += 1;
            if outputs > MAX_OUTPUTS {
                return self.violate(Invariant::I11, "poll never returns None".into());
            }
            self.act(output);
            if self.violation.is_some() {
                return;
            }
        }
        self.busy_outputs += outputs;
        self.check_throttle();
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Resolve { query, host, port } => self.resolve(query, &host, port),
            Output::Connect { conn, addr, host } => self.connect(conn, addr, &host),
            Output::Transmit { conn } => self.transmits.push(conn),
            Output::Close { conn } => {
                self.trace(|| format!("{conn:?} closed by the producer"));
                self.close_by_client(conn);
            }
            Output::Completed(completion) => {
                self.trace(|| format!("{completion:?}"));
                self.digest.word(self.now);
                completion.tokens.iter().for_each(|token| self.digest.word(*token));
                let latest = self.plan.config.delivery_timeout + self.slept + SECOND;
                let result = self.ledger.complete(self.now, &completion, latest);
                self.check(result);
            }
            Output::Event(event) => {
                self.trace(|| {
                    format!("event {:?} {}: {}", event.severity, event.kind, event.message)
                });
            }
        }
    }

    fn resolve(&mut self, query: QueryId, host: &str, port: u16) {
        let delay = self.net.magnitude(10, 20 * MILLISECOND);
        let result = match self.net.chance(self.plan.faults.resolve) {
            true => Err("the name server does not answer".into()),
            false => Ok(self.cluster.resolve(host)),
        };
        self.trace(|| format!("resolve {host}:{port}: {result:?}"));
        self.queue.push(self.now + delay, Event::Resolved { query, result });
    }

    pub fn resolved(&mut self, query: QueryId, result: Result<Vec<SocketAddr>, String>) {
        let now = self.now;
        self.producer.handle(now, Input::Resolved { query, result });
        self.pump();
    }

    fn connect(&mut self, conn: ConnId, address: SocketAddr, host: &str) {
        self.traffic.connects.push(self.now);
        self.digest.word(self.now);
        let broker = self.cluster.at_address(address);
        self.trace(|| format!("{conn:?} connect to {address} ({host}), broker {broker:?}"));
        if self.links.contains_key(&conn) {
            return self.violate(Invariant::I9, format!("{conn:?} used twice"));
        }
        let at = broker.unwrap_or(0);
        let known = &self.cluster.brokers[at];
        self.links.insert(conn, Link::new(at, known.incarnation, known.era));
        if self.outage == Some(Outage::BlackHole) || self.net.chance(self.plan.faults.black_hole) {
            return;
        }
        let delay = self.net.between(self.plan.latency / 2, self.plan.latency * 2);
        let refused = self.outage == Some(Outage::Refused)
            || broker.is_none()
            || self.net.chance(self.plan.faults.refuse);
        let event = match refused {
            true => Event::ClosedAtClient { conn, reason: "connection refused" },
            false => Event::Accepted { conn, address },
        };
        self.queue.push(self.now + delay, event);
    }

    /// The broker's kernel takes the connection, even if its process is frozen.
    pub fn accept(&mut self, conn: ConnId, address: SocketAddr) {
        let broker = self.cluster.at_address(address).filter(|b| self.cluster.brokers[*b].up);
        let delay = self.net.between(self.plan.latency / 2, self.plan.latency * 2);
        let Some(broker) = broker else {
            let reason = "connection refused";
            return self.queue.push(self.now + delay, Event::ClosedAtClient { conn, reason });
        };
        let known = &self.cluster.brokers[broker];
        let (incarnation, era) = (known.incarnation, known.era);
        let link = self.link(conn);
        link.broker = broker;
        link.incarnation = incarnation;
        link.era = era;
        link.server_open = true;
        self.queue.push(self.now + delay, Event::Connected { conn });
        if self.outage == Some(Outage::ClosedOnAccept) {
            self.reset(conn, self.now + 2 * delay);
        }
    }

    pub fn connected(&mut self, conn: ConnId) {
        let link = self.link(conn);
        if !link.client_open {
            return;
        }
        link.established = true;
        let now = self.now;
        self.trace(|| format!("{conn:?} connected"));
        self.producer.handle(now, Input::Connected { conn });
        self.pump();
    }

    fn set_timer(&mut self) {
        let next = self.producer.next_timer();
        // An unchanged timer may be due: then it is the driver that is late.
        if next == self.timer {
            return;
        }
        if next.is_some_and(|at| at < self.now) {
            let what = format!("the timer is {} µs in the past", self.now - next.unwrap_or(0));
            return self.violate(Invariant::I11, what);
        }
        self.timer = next;
        self.timer_generation += 1;
        let Some(at) = next else { return };
        let late = match self.net.chance(self.plan.faults.late_timer) {
            true => self.net.magnitude(1, 20 * MILLISECOND),
            false => 0,
        };
        self.queue.push(at + late, Event::Timer(self.timer_generation));
    }

    pub fn timer_fired(&mut self, generation: u64) {
        /// Many timers guard against what then does not happen; not so many in a row within so
        /// short a time.
        const MAX_IDLE: u32 = 300;
        const WITHIN: Micros = SECOND;
        if generation != self.timer_generation {
            return;
        }
        self.timer = None;
        let now = self.now;
        let before = (self.busy_outputs, self.sent.batches);
        self.producer.handle(now, Input::Timer);
        self.pump();
        if (self.busy_outputs, self.sent.batches) != before {
            self.idle_timers = 0;
            return;
        }
        if self.idle_timers == 0 || now > self.traffic.idle_timers_since + WITHIN {
            self.traffic.idle_timers_since = now;
            self.idle_timers = 0;
        }
        self.idle_timers += 1;
        if self.idle_timers > MAX_IDLE {
            let what = format!("{MAX_IDLE} timers in a second, and nothing was done");
            self.violate(Invariant::I11, what);
        }
    }

    fn check_memory(&mut self) {
        let config = &self.plan.config;
        let one_batch = config.batch_size.max(config.max_message_size) + 1024;
        let (used, limit) = (self.producer.memory_used(), config.buffer_size + one_batch);
        if used > limit {
            self.violate(Invariant::I10, format!("{used} bytes held, limit {limit}"));
        }
        let (says, is) = (self.producer.outstanding(), self.ledger.outstanding);
        if says != is {
            self.violate(Invariant::I10, format!("outstanding() is {says}, should be {is}"));
        }
    }

    /// No new request on a connection whose broker asked us to wait.
    fn check_throttle(&mut self) {
        if self.plan.faults.throttle == 0.0 {
            return;
        }
        let mut early = None;
        for (conn, link) in self.links.iter_mut().filter(|(_, link)| link.client_open) {
            let waiting: usize = self.producer.transmit(*conn).map(|segment| segment.len()).sum();
            let queued = link.written() + waiting as u64;
            if queued > link.queued && self.now < link.throttled_until {
                early = Some((*conn, link.throttled_until));
            }
            link.queued = queued;
        }
        if let Some((conn, until)) = early {
            let what = format!("a request on {conn:?}, throttled until {until}");
            self.violate(Invariant::I13, what);
        }
    }

    /// Reads along with what is written.
    pub fn observe(&mut self, conn: ConnId, bytes: &[u8]) {
        self.digest.word(self.now);
        self.digest.bytes(bytes);
        let link = self.link(conn);
        link.partial.extend_from_slice(bytes);
        loop {
            let link = self.link(conn);
            let Some(length) = link.partial.first_chunk::<4>() else { return };
            let length = i32::from_be_bytes(*length);
            if !(0..100 * 1024 * 1024).contains(&length) {
                return self.violate(Invariant::I9, format!("a frame of {length} bytes"));
            }
            let size = length as usize + 4;
            if link.partial.len() < size {
                return;
            }
            let mut frame = link.partial.split_to(size).freeze();
            frame.advance(4);
            link.consumed += size as u64;
            match wire::decode(frame) {
                Ok(request) => self.observe_request(conn, request),
                Err(what) => self.violate(Invariant::I9, format!("{conn:?}: {what}")),
            }
            if self.violation.is_some() {
                return;
            }
        }
    }

    fn observe_request(&mut self, conn: ConnId, request: wire::Request) {
        self.requests += 1;
        let now = self.now;
        self.trace(|| format!("{conn:?} → {}", describe(&request)));
        match request.api {
            wire::METADATA => self.traffic.metadata.push(now),
            wire::INIT_PRODUCER_ID => self.traffic.producer_ids.push(now),
            _ => {}
        }
        let link = self.link(conn);
        let era = link.era;
        let last = link.last_correlation_id.replace(request.correlation_id);
        let supported = match request.api {
            wire::PRODUCE => era.serves_produce(request.version),
            wire::METADATA => (era.metadata.0..=era.metadata.1).contains(&request.version),
            wire::INIT_PRODUCER_ID => {
                (era.init_producer_id.0..=era.init_producer_id.1).contains(&request.version)
            }
            _ => true,
        };
        let early = !link.negotiated && request.api != wire::API_VERSIONS;
        let (api, version) = (request.api, request.version);
        if last.is_some_and(|last| last.wrapping_add(1) != request.correlation_id) {
            let what = format!("correlation id {} after {last:?}", request.correlation_id);
            return self.violate(Invariant::I9, what);
        }
        if !supported {
            let what = format!("API {api} version {version} to a broker of {}", era.name);
            return self.violate(Invariant::I9, what);
        }
        if early {
            return self
                .violate(Invariant::I9, format!("API {api} before ApiVersions was answered"));
        }
        if let Body::Produce { request: produce, batches } = &request.body {
            if produce.acks != self.plan.config.acks.wire() {
                return self.violate(Invariant::I9, format!("acks {}", produce.acks));
            }
            let mut known = Vec::new();
            for sent in batches {
                let topic = self.topic_by_reference(&sent.topic);
                for mark in &sent.batch.records {
                    let entry = self.ledger.get(mark.token);
                    let place = entry.map(|entry| (entry.topic, entry.hash));
                    // A topic id of another incarnation is found nowhere.
                    let expected = topic.map(|topic| (topic, mark.hash));
                    if place.is_none() || expected.is_some_and(|e| Some(e) != place) {
                        let what = format!("record {mark:?} is not what was appended: {place:?}");
                        return self.violate(Invariant::I2, what);
                    }
                }
                if let Some(topic) = topic {
                    known.push(((topic, sent.partition as usize), sent.batch.clone()));
                }
            }
            let (id, answered) = ((conn, request.correlation_id), produce.acks != 0);
            let result = self.sent.request(id, era, &known, request.size, answered, &self.ledger);
            self.check(result);
        }
        let acks = self.plan.config.acks;
        let link = self.link(conn);
        match &request.body {
            Body::Produce { batches, .. } if acks == Acks::None => {
                let marks = batches.iter().flat_map(|sent| &sent.batch.records);
                link.without_answer.extend(marks.map(|mark| mark.token));
            }
            _ => link.unanswered += 1,
        }
        let end = link.consumed;
        link.frames.push_back((end, request.into()));
    }

    pub fn topic_by_reference(&self, reference: &TopicRef) -> Option<usize> {
        self.cluster.topics.iter().position(|topic| match reference {
            TopicRef::Name(name) => topic.name == *name,
            TopicRef::Id(id) => topic.id == *id,
        })
    }
}

fn describe(request: &wire::Request) -> String {
    let wire::Request { api, version, correlation_id, size, .. } = request;
    let mut text = format!("#{correlation_id} API {api} v{version}, {size} bytes");
    match &request.body {
        Body::Produce { batches, request } => {
            text += &format!(" timeout {} ms", request.timeout_ms);
            for sent in batches {
                let b = &sent.batch;
                let tokens: Vec<_> = b.records.iter().map(|r| r.token).collect();
                text += &format!(
                    " [{:?}/{} pid {} epoch {} seq {} tokens {tokens:?}]",
                    sent.topic, sent.partition, b.producer_id, b.epoch, b.first_sequence
                );
            }
        }
        Body::Metadata(request) => {
            let names: Option<Vec<_>> = request.topics.as_ref().map(|topics| {
                topics.iter().map(|t| t.name.as_ref().map_or("?", |n| n.0.as_str())).collect()
            });
            text += &format!(" topics {names:?}");
        }
        _ => {}
    }
    text
}
