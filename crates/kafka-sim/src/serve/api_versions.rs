//! ApiVersions, with the downgrade answers of each era.

use kafka::ConnId;
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::messages::api_versions_response::ApiVersion;

use crate::network::Answer;
use crate::plan::Outage;
use crate::wire::{self, Request};
use crate::world::World;

impl World {
    pub fn serve_api_versions(&mut self, conn: ConnId, request: &Request) {
        let era = self.links[&conn].era;
        let entry = |api: i16, (min, max): (i16, i16)| {
            ApiVersion::default().with_api_key(api).with_min_version(min).with_max_version(max)
        };
        let mut response = ApiVersionsResponse::default();
        let mut version = request.version;
        if version > era.api_versions.1 {
            // KIP-511: in version 0, whatever was asked; from 2.4 on with the range to use.
            response.error_code = 35;
            version = 0;
            if era.api_versions.1 >= 3 {
                response.api_keys = vec![entry(wire::API_VERSIONS, era.api_versions)];
            }
        } else if self.outage == Some(Outage::BadVersions) {
            // A proxy that speaks for something else.
            response.api_keys = vec![entry(wire::API_VERSIONS, era.api_versions)];
        } else {
            response.api_keys = vec![
                entry(wire::PRODUCE, era.produce),
                entry(1, (0, 11)),
                entry(wire::METADATA, era.metadata),
                entry(wire::API_VERSIONS, era.api_versions),
                entry(wire::INIT_PRODUCER_ID, era.init_producer_id),
            ];
        }
        let throttle_ms = self.throttle_ms(version >= 2);
        response.throttle_time_ms = throttle_ms;
        let negotiated = response.error_code == 0;
        let correlation_id = request.correlation_id;
        let frame = wire::encode(correlation_id, version, &response);
        let answer = Answer { correlation_id, throttle_ms, negotiated, results: Vec::new() };
        self.respond(conn, frame, answer);
    }
}
