//! InitProducerId without a transactional id: a new id each time.

use kafka::ConnId;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use crate::network::Answer;
use crate::plan::Outage;
use crate::violation::Invariant;
use crate::wire::{self, Request};
use crate::world::World;

impl World {
    pub fn serve_producer_id(
        &mut self,
        conn: ConnId,
        request: &Request,
        body: &InitProducerIdRequest,
    ) {
        if body.transactional_id.is_some() || body.producer_id.0 != -1 || body.producer_epoch != -1
        {
            return self.violate(Invariant::I9, format!("{body:?}"));
        }
        let refused = self.net.chance(self.plan.faults.init_producer_id)
            || self.outage == Some(Outage::NoProducerId);
        let mut response = InitProducerIdResponse::default();
        if refused {
            response.error_code = *self.net.pick(&[14, 15, 16, 7, 41]);
            response.producer_id = (-1).into();
            response.producer_epoch = -1;
        } else {
            response.producer_id = self.cluster.next_producer_id.into();
            response.producer_epoch = 0;
            self.cluster.next_producer_id += 1;
        }
        let throttle_ms = self.throttle_ms(request.version >= 1);
        response.throttle_time_ms = throttle_ms;
        self.trace(|| {
            format!(
                "{conn:?} ← producer id {:?} code {}",
                response.producer_id, response.error_code
            )
        });
        let correlation_id = request.correlation_id;
        let frame = wire::encode(correlation_id, request.version, &response);
        let answer = Answer { correlation_id, throttle_ms, negotiated: false, results: Vec::new() };
        self.respond(conn, frame, answer);
    }
}
