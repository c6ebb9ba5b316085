//! A broker at work: one request at a time per connection, in order.

mod api_versions;
mod metadata;
mod produce;
mod producer_id;

pub use produce::Waiting;

use bytes::Bytes;
use kafka::{ConnId, MILLISECOND, SECOND};

use crate::network::Answer;
use crate::plan::Outage;
use crate::wire::Body;
use crate::world::{Event, World};

impl World {
    /// Takes up the next request of a connection, if there is one and the last one is done.
    pub fn serve_next(&mut self, conn: ConnId) {
        let link = self.link(conn);
        if link.busy || !link.server_open {
            return;
        }
        if !link.has_arrived() {
            link.server_open &= !link.closing;
            return;
        }
        link.busy = true;
        link.serve_scheduled = true;
        let mut pause = self.net.between(5, 200);
        if self.net.chance(self.plan.faults.slow_service) {
            pause += self.net.magnitude(MILLISECOND, 3 * SECOND);
        }
        self.queue.push(self.now + pause, Event::Serve { conn });
    }

    pub fn serve(&mut self, conn: ConnId) {
        let link = &self.links[&conn];
        let broker = &self.cluster.brokers[link.broker];
        if broker.incarnation != link.incarnation || !broker.up {
            return;
        }
        if self.now < broker.frozen_until {
            return self.queue.push(broker.frozen_until, Event::Serve { conn });
        }
        // A thaw may call twice.
        let link = self.link(conn);
        if !std::mem::take(&mut link.serve_scheduled) || !link.server_open {
            return;
        }
        let Some(request) = link.next_arrived() else {
            link.busy = false;
            return;
        };
        if self.outage == Some(Outage::SilentOnAccept) {
            return;
        }
        match &request.body {
            Body::ApiVersions => self.serve_api_versions(conn, &request),
            Body::Metadata(body) => self.serve_metadata(conn, &request, body),
            Body::InitProducerId(body) => self.serve_producer_id(conn, &request, body),
            Body::Produce { .. } => self.serve_produce(conn, request),
        }
    }

    /// Sends an answer; the connection may then be read again, unless a quota mutes it (KIP-219).
    pub fn respond(&mut self, conn: ConnId, frame: Bytes, answer: Answer) {
        let throttle_ms = answer.throttle_ms;
        let link = self.link(conn);
        if link.client_open && link.server_open {
            self.carry_to_client(conn, frame, answer);
        }
        let pause = throttle_ms as u64 * MILLISECOND;
        self.queue.push(self.now + pause, Event::Unmute { conn });
    }

    pub fn unmute(&mut self, conn: ConnId) {
        self.link(conn).busy = false;
        self.serve_next(conn);
    }

    /// The broker ends the connection.
    pub fn hang_up(&mut self, conn: ConnId) {
        let link = self.link(conn);
        link.busy = false;
        link.server_open = false;
        link.frames.clear();
        let delay = self.net.between(1, self.plan.latency);
        let reason = "closed by the broker";
        self.queue.push(self.now + delay, Event::ClosedAtClient { conn, reason });
    }

    /// Throttling is only for versions in which the answer comes first and the pause after it.
    pub fn throttle_ms(&mut self, allowed: bool) -> i32 {
        match allowed && self.net.chance(self.plan.faults.throttle) {
            true => self.net.magnitude(1, 3000) as i32,
            false => 0,
        }
    }
}
