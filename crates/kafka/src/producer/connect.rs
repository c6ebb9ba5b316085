//! Connections: when to open one, what a fresh one says first, what happens when one ends.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use super::broker::BrokerKey;
use super::connection::{Connection, MAX_FRAME, RequestKind, State};
use super::{Producer, Timer};
use crate::error_code::ErrorCode;
use crate::negotiation::{Negotiated, supported};
use crate::wire::{ApiKey, Reader, api_versions, response_header};
use crate::{ConnId, Micros, Output, QueryId, SECOND, Severity};

/// How this client introduces itself (KIP-511).
const SOFTWARE_NAME: &str = "nginx-kafka";
const SOFTWARE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A connection that ends so soon after its last use was not closed for idleness.
const HASTY: Micros = SECOND;

impl Producer {
    /// Wants a connection to this broker: opens one unless there is one, or one is under way, or
    /// the last failure is too fresh.
    pub(super) fn connect(&mut self, now: Micros, key: BrokerKey, timer: &mut Timer) {
        let query = QueryId(self.next_id());
        let Some(broker) = self.brokers.get_mut(key) else { return };
        if broker.is_engaged() {
            return;
        }
        if now < broker.retry_at {
            return timer.wake_at(broker.retry_at);
        }
        broker.last_attempt = now;
        if let Ok(address) = broker.endpoint.host.parse::<IpAddr>() {
            broker.addresses = VecDeque::from([SocketAddr::new(address, broker.endpoint.port)]);
        }
        if broker.addresses.is_empty() {
            broker.query = Some(query);
            let (host, port) = (broker.endpoint.host.clone(), broker.endpoint.port);
            return self.outputs.push_back(Output::Resolve { query, host, port });
        }
        self.open(now, key, timer);
    }

    /// Opens a connection to the broker's next address.
    fn open(&mut self, now: Micros, key: BrokerKey, timer: &mut Timer) {
        let conn = ConnId(self.next_id());
        let deadline = now.saturating_add(self.config.connect_timeout);
        let Some(broker) = self.brokers.get_mut(key) else { return };
        let Some(addr) = broker.addresses.pop_front() else { return };
        broker.conn = Some(conn);
        let host = broker.endpoint.host.clone();
        self.connections.insert(conn, Connection::new(conn, key, now, deadline));
        self.outputs.push_back(Output::Connect { conn, addr, host });
        timer.wake_at(deadline);
    }

    pub(super) fn on_resolved(
        &mut self,
        now: Micros,
        query: QueryId,
        result: Result<Vec<SocketAddr>, String>,
    ) {
        let found = self.brokers.table.iter_mut().find(|(_, b)| b.query == Some(query));
        let Some((&key, broker)) = found else { return };
        broker.query = None;
        match result {
            Ok(addresses) if !addresses.is_empty() => {
                broker.addresses = addresses.into();
                let mut timer = Timer { now, at: None };
                self.open(now, key, &mut timer);
            }
            Ok(_) => self.broker_failed(now, key, "the name has no address"),
            Err(reason) => self.broker_failed(now, key, &format!("name not resolved: {reason}")),
        }
    }

    pub(super) fn on_connected(&mut self, now: Micros, conn: ConnId) {
        let version = self.config.api_versions.first_api_versions_request();
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.state = State::Negotiating;
        self.send_api_versions(now, conn, version);
    }

    fn send_api_versions(&mut self, now: Micros, conn: ConnId, version: i16) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let frame = api_versions::encode_request(
            version,
            connection.next_correlation_id(),
            &self.config.client_id,
            SOFTWARE_NAME,
            SOFTWARE_VERSION,
        );
        let deadline = connection.setup_deadline;
        connection.send(now, deadline, RequestKind::ApiVersions(version), true, [frame]);
    }

    pub(super) fn on_transmitted(&mut self, now: Micros, conn: ConnId, bytes: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.transmitted(now, bytes);
        while let Some(request) =
            self.connections.get_mut(&conn).and_then(Connection::take_unanswered)
        {
            if let RequestKind::Produce { partitions, .. } = request.kind {
                self.sent_without_acks(now, request.id, &partitions);
            }
        }
    }

    pub(super) fn on_received(&mut self, now: Micros, conn: ConnId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.last_used = now;
        connection.frames.push(bytes);
        loop {
            // A frame may have ended the connection.
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            match connection.frames.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) => {
                    if let Err(reason) = self.on_frame(now, conn, &frame) {
                        return self.drop_connection(now, conn, &reason);
                    }
                }
                Err(error) => return self.drop_connection(now, conn, &error.to_string()),
            }
        }
    }

    /// Answers come in the order of the requests; anything else means that the two sides no longer
    /// understand each other.
    fn on_frame(&mut self, now: Micros, conn: ConnId, frame: &Bytes) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
        // Some brokers answer even Produce with acks=0 (Azure Event Hubs, franz-go 1.3.3).
        let no_acks = self.config.acks == crate::Acks::None;
        let Some(request) = connection.in_flight.front() else {
            return if no_acks { Ok(()) } else { Err("an answer to no request".into()) };
        };
        let (api, version) = request.kind.api_and_version();
        let mut reader = Reader::new(frame);
        let correlation_id = response_header::decode(&mut reader, api, version)
            .map_err(|error| format!("unreadable answer to {api}: {error}"))?;
        if correlation_id != request.id.correlation_id {
            if no_acks && correlation_id < request.id.correlation_id {
                return Ok(());
            }
            return Err(format!(
                "an answer to request {correlation_id} instead of {}",
                request.id.correlation_id
            ));
        }
        let Some(request) = connection.in_flight.pop_front() else { return Ok(()) };
        let unreadable = |error| format!("unreadable answer to {api} version {version}: {error}");
        if api != ApiKey::ApiVersions && !std::mem::replace(&mut connection.proven, true) {
            let key = connection.broker;
            self.broker_works(key);
        }
        match request.kind {
            RequestKind::ApiVersions(version) => {
                let response =
                    api_versions::decode_response(&mut reader, version).map_err(unreadable)?;
                self.on_api_versions(now, conn, version, &response)
            }
            RequestKind::Metadata { version, full } => {
                self.on_metadata(now, conn, version, full, &mut reader).map_err(unreadable)
            }
            RequestKind::InitProducerId(version) => {
                self.on_producer_id(now, conn, version, &mut reader).map_err(unreadable)
            }
            RequestKind::Produce { version, partitions } => {
                let result = self.on_produced(now, request.id, version, &partitions, &mut reader);
                if result.is_err() {
                    self.cut_off(request.id, &partitions, true);
                }
                result.map_err(unreadable)?.map_or(Ok(()), Err)
            }
        }
    }

    fn on_api_versions(
        &mut self,
        now: Micros,
        conn: ConnId,
        asked: i16,
        response: &api_versions::Response,
    ) -> Result<(), String> {
        // KIP-511: brokers before 2.4 do not know version 3 and say so in version 0.
        if response.error_code == ErrorCode::UNSUPPORTED_VERSION && asked > 0 {
            self.send_api_versions(now, conn, 0);
            return Ok(());
        }
        let negotiated = Negotiated::from_response(response, &self.config.api_versions)
            .map_err(|error| format!("{error}; adjust api_versions, or upgrade the older side"))?;
        let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
        let key = connection.broker;
        let versions = format!(
            "Produce {}, Metadata {}, InitProducerId {}",
            negotiated.produce().get(),
            negotiated.metadata().get(),
            negotiated.init_producer_id().map_or("none".into(), |v| v.get().to_string()),
        );
        let range = |api| {
            let range = negotiated.broker_range(api);
            range.map_or_else(|| "none".to_string(), |range| range.to_string())
        };
        let offer = format!(
            "broker Produce {} Metadata {}, ours {} {}",
            range(ApiKey::Produce),
            range(ApiKey::Metadata),
            supported(ApiKey::Produce),
            supported(ApiKey::Metadata),
        );
        connection.state = State::Ready(Box::new(negotiated));
        connection.frames.set_max_frame(MAX_FRAME);
        self.throttled(now, conn, response.throttle_time_ms);
        let message =
            format!("connected to {}, using {versions} ({offer})", self.brokers.name(key));
        self.event(Severity::Info, "connected", message);
        Ok(())
    }

    /// Ends a connection from our side, after a fault.
    pub(super) fn drop_connection(&mut self, now: Micros, conn: ConnId, reason: &str) {
        if self.connections.contains_key(&conn) {
            self.outputs.push_back(Output::Close { conn });
            self.on_closed(now, conn, reason);
        }
    }

    /// Ends a connection that nothing is asked of; that is no fault.
    pub(super) fn close_quietly(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.remove(&conn) else { return };
        debug_assert!(connection.in_flight.is_empty());
        self.outputs.push_back(Output::Close { conn });
        if let Some(broker) = self.brokers.get_mut(connection.broker)
            && broker.conn == Some(conn)
        {
            broker.conn = None;
        }
    }

    pub(super) fn on_closed(&mut self, now: Micros, conn: ConnId, reason: &str) {
        let Some(mut connection) = self.connections.remove(&conn) else { return };
        let key = connection.broker;
        let ready = connection.negotiated().is_some();
        let idle = ready && connection.in_flight.is_empty();
        let hasty = now < connection.last_used.saturating_add(HASTY);
        let requests = std::mem::take(&mut connection.in_flight);
        for request in requests {
            let left = connection.has_left(&request);
            match request.kind {
                RequestKind::Produce { partitions, .. } => {
                    self.cut_off(request.id, &partitions, left);
                }
                RequestKind::Metadata { .. } => self.lookup.cut_off(),
                RequestKind::InitProducerId(_) => self.identity.cut_off(),
                RequestKind::ApiVersions(_) => {}
            }
        }
        let Some(broker) = self.brokers.get_mut(key).filter(|b| b.conn == Some(conn)) else {
            return;
        };
        broker.conn = None;
        if idle {
            // Brokers close connections that are idle (`connections.max.idle.ms`): the next
            // request opens another.
            broker.addresses.clear();
            // With acks=0 a close is the only way in which a broker can say that it does not lead
            // the partition, or not any more.
            if let (crate::Acks::None, BrokerKey::Node(node)) = (self.config.acks, key) {
                broker.failures = if hasty { broker.failures.saturating_add(1) } else { 0 };
                if hasty {
                    let backoff = self.config.reconnect_backoff;
                    broker.retry_at = now + backoff.pause(broker.failures, &mut self.random);
                }
                self.refresh_topics_led_by(now, node, true);
            }
            let message = format!("idle connection to {} ended: {reason}", self.brokers.name(key));
            return self.event(Severity::Info, "idle", message);
        }
        self.broker_failed(now, key, reason);
    }

    fn broker_works(&mut self, key: BrokerKey) {
        if let Some(broker) = self.brokers.get_mut(key) {
            broker.failures = 0;
            broker.last_error = None;
        }
        if self.failing.take().is_some() {
            let message = format!("reachable again through {}", self.brokers.name(key));
            self.event(Severity::Notice, "recovered", message);
        }
    }

    /// A connection was refused, lost or useless.
    fn broker_failed(&mut self, now: Micros, key: BrokerKey, reason: &str) {
        let name = self.brokers.name(key);
        let Some(broker) = self.brokers.get_mut(key) else { return };
        broker.failures = broker.failures.saturating_add(1);
        // Another address of the same name is tried at once.
        broker.retry_at = if broker.addresses.is_empty() {
            now + self.config.reconnect_backoff.pause(broker.failures, &mut self.random)
        } else {
            now
        };
        let reason = format!("{name}: {reason}");
        broker.last_error = Some(reason.as_str().into());
        let usable = self.connections.values().any(|connection| connection.proven);
        if !usable && self.failing.is_none() {
            self.failing = Some((now, reason.as_str().into()));
        }
        // Its partitions may have moved to another broker by now.
        if let BrokerKey::Node(node) = key {
            self.refresh_topics_led_by(now, node, false);
        }
        let severity = if usable { Severity::Warning } else { Severity::Error };
        let advice = "check bootstrap_servers, the broker's listeners and its log";
        self.event(severity, "connection", format!("broker {reason}; {advice}"));
    }

    /// Deadlines of connections and of their requests, idle and surplus connections.
    pub(super) fn check_connections(&mut self, now: Micros, timer: &mut Timer) {
        let is_node = |c: &Connection| matches!(c.broker, BrokerKey::Node(_));
        let node_ready = self
            .connections
            .values()
            .any(|c| is_node(c) && c.negotiated().is_some() && !c.retiring);
        let mut late = Vec::new();
        let mut surplus = Vec::new();
        for connection in self.connections.values_mut() {
            if now < connection.throttled_until {
                timer.wake_at(connection.throttled_until);
            }
            if connection.negotiated().is_none() {
                match now >= connection.setup_deadline {
                    true => late.push((connection.id, setup_reason(connection))),
                    false => timer.wake_at(connection.setup_deadline),
                }
                continue;
            }
            if let Some(request) = connection.in_flight.front() {
                // A throttled broker is silent on purpose (KIP-219).
                let deadline = request.deadline.max(
                    connection.throttled_until.saturating_add(self.config.request_timeout)
                        * Micros::from(now < connection.throttled_until),
                );
                match now >= deadline {
                    true => {
                        let (api, _) = request.kind.api_and_version();
                        late.push((connection.id, format!("no answer to {api} in time")));
                    }
                    false => timer.wake_at(deadline),
                }
                continue;
            }
            let idle_at = connection.last_used.saturating_add(self.config.idle_timeout);
            let listed = self.brokers.get(connection.broker).is_some_and(|b| b.listed);
            let bootstrap = matches!(connection.broker, BrokerKey::Bootstrap(_));
            if now >= idle_at || connection.retiring || !listed || (bootstrap && node_ready) {
                surplus.push(connection.id);
            } else {
                timer.wake_at(idle_at);
            }
        }
        for (conn, reason) in late {
            self.drop_connection(now, conn, &reason);
        }
        for conn in surplus {
            self.close_quietly(conn);
        }
    }

    pub(super) fn announce_transmits(&mut self) {
        for connection in self.connections.values_mut() {
            if connection.has_outgoing() && !connection.announced {
                connection.announced = true;
                self.outputs.push_back(Output::Transmit { conn: connection.id });
            }
        }
    }

    /// KIP-219: the broker reads nothing from this connection for a while.
    pub(super) fn throttled(&mut self, now: Micros, conn: ConnId, throttle_time_ms: i32) {
        /// No broker means longer; what it says is bounded, what it does shows in time.
        const MAX_THROTTLE_MS: i32 = 60_000;
        let pause = Micros::from(throttle_time_ms.clamp(0, MAX_THROTTLE_MS) as u32) * 1000;
        if pause == 0 {
            return;
        }
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.throttled_until = connection.throttled_until.max(now + pause);
        }
        let message =
            format!("throttled by a broker for {throttle_time_ms} ms: a quota is used up");
        self.event(Severity::Warning, "throttle", message);
    }
}

fn setup_reason(connection: &Connection) -> String {
    match connection.state {
        State::Connecting => "no connection in time".into(),
        _ => "connected, but no answer to ApiVersions in time".into(),
    }
}
