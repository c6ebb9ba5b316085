//! Each API and version against the crate `kafka-protocol`: random responses that it writes, with
//! unknown tagged fields on every structure, and requests that it reads back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use kafka::negotiation::{InitProducerIdVersion, MetadataVersion, ProduceVersion};
use kafka::record_batch::BatchBuilder;
use kafka::wire::produce::{PartitionData, TopicData};
use kafka::wire::{ApiKey, Encoding, Reader, response_header};
use kafka::wire::{api_versions, init_producer_id, metadata, produce};
use kafka_protocol::messages::api_versions_response::{ApiVersion, SupportedFeatureKey};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, InitProducerIdRequest, InitProducerIdResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use crate::oracle;
use crate::random::Random;

const ROUNDS: u64 = 100;

/// Writes random responses of one version.
struct Broker {
    random: Random,
    api: ApiKey,
    version: i16,
}

impl Broker {
    fn new(api: ApiKey, version: i16, round: u64) -> Self {
        Self { random: Random::new(round * 1000 + version as u64 + 1), api, version }
    }

    fn text(&mut self) -> StrBytes {
        StrBytes::from_string(self.random.text())
    }

    fn nullable_text(&mut self) -> Option<StrBytes> {
        self.random.bool().then(|| self.text())
    }

    /// Unknown tagged fields above those that the versions spoken here know.
    fn tags(&mut self) -> BTreeMap<i32, Bytes> {
        if self.api.encoding(self.version) == Encoding::Classic {
            return BTreeMap::new();
        }
        let count = self.random.below(3);
        let tags = [4, 5, 127, 128, 40_000];
        (0..count).map(|_| (tags[self.random.below(5)], self.random.bytes().into())).collect()
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.random.below(4)).map(|_| item(self)).collect()
    }

    /// A response with its header, as the frame decoder would hand it out.
    fn encode(&mut self, response: &impl Encodable, correlation_id: i32) -> Bytes {
        let mut out = BytesMut::new();
        let flexible = self.api.encoding(self.version) == Encoding::Flexible;
        let header_version = i16::from(flexible && self.api != ApiKey::ApiVersions);
        let mut header = ResponseHeader::default();
        header.correlation_id = correlation_id;
        if header_version == 1 {
            header.unknown_tagged_fields = self.tags();
        }
        header.encode(&mut out, header_version).unwrap();
        response.encode(&mut out, self.version).unwrap();
        out.freeze()
    }

    fn api_versions(&mut self) -> ApiVersionsResponse {
        let mut response = ApiVersionsResponse::default();
        response.error_code = [0, 0, 41][self.random.below(3)];
        response.api_keys = self.list(|broker| {
            ApiVersion::default()
                .with_api_key(broker.random.i16())
                .with_min_version(broker.random.i16())
                .with_max_version(broker.random.i16())
                .with_unknown_tagged_fields(broker.tags())
        });
        if self.version >= 1 {
            response.throttle_time_ms = self.random.i32();
        }
        if self.version >= 3 {
            response.finalized_features_epoch = self.random.i64();
            response.supported_features = self.list(|broker| {
                SupportedFeatureKey::default()
                    .with_name(broker.text())
                    .with_unknown_tagged_fields(broker.tags())
            });
            response.unknown_tagged_fields = self.tags();
        }
        response
    }

    fn metadata(&mut self) -> MetadataResponse {
        let version = self.version;
        let mut response = MetadataResponse::default();
        if version >= 3 {
            response.throttle_time_ms = self.random.i32();
        }
        response.brokers = self.list(|broker| {
            MetadataResponseBroker::default()
                .with_node_id(broker.random.i32().into())
                .with_host(broker.text())
                .with_port(broker.random.i32())
                .with_rack(broker.nullable_text())
                .with_unknown_tagged_fields(broker.tags())
        });
        if version >= 2 {
            response.cluster_id = self.nullable_text();
        }
        response.controller_id = self.random.i32().into();
        response.topics = self.list(Self::metadata_topic);
        if (8..=10).contains(&version) {
            response.cluster_authorized_operations = self.random.i32();
        }
        if version >= 13 {
            response.error_code = self.random.i16();
        }
        response.unknown_tagged_fields = self.tags();
        response
    }

    fn metadata_topic(&mut self) -> MetadataResponseTopic {
        let version = self.version;
        let mut topic = MetadataResponseTopic::default()
            .with_error_code(self.random.i16())
            .with_is_internal(self.random.bool())
            .with_name(Some(TopicName(self.text())))
            .with_unknown_tagged_fields(self.tags());
        if version >= 10 {
            topic.topic_id = self.uuid().parse().unwrap();
        }
        if version >= 12 && self.random.bool() {
            topic.name = None;
        }
        if version >= 8 {
            topic.topic_authorized_operations = self.random.i32();
        }
        topic.partitions = self.list(|broker| {
            let nodes = |broker: &mut Self| broker.list(|broker| broker.random.i32().into());
            let mut partition = MetadataResponsePartition::default()
                .with_error_code(broker.random.i16())
                .with_partition_index(broker.random.i32())
                .with_leader_id(broker.random.i32().into())
                .with_replica_nodes(nodes(broker))
                .with_isr_nodes(nodes(broker))
                .with_unknown_tagged_fields(broker.tags());
            if version >= 5 {
                partition.offline_replicas = nodes(broker);
            }
            if version >= 7 {
                partition.leader_epoch = broker.random.i32();
            }
            partition
        });
        topic
    }

    fn produce(&mut self) -> ProduceResponse {
        let version = self.version;
        let mut response = ProduceResponse::default()
            .with_throttle_time_ms(self.random.i32())
            .with_unknown_tagged_fields(self.tags());
        response.responses = self.list(|broker| {
            let mut topic = TopicProduceResponse::default()
                .with_partition_responses(broker.list(Self::partition_response))
                .with_unknown_tagged_fields(broker.tags());
            if version >= 13 {
                topic.topic_id = broker.uuid().parse().unwrap();
            } else {
                topic.name = TopicName(broker.text());
            }
            topic
        });
        if version >= 10 {
            response.node_endpoints = self.list(|broker| {
                NodeEndpoint::default()
                    .with_node_id(broker.random.i32().into())
                    .with_host(broker.text())
                    .with_port(broker.random.i32())
                    .with_rack(broker.nullable_text())
                    .with_unknown_tagged_fields(broker.tags())
            });
        }
        response
    }

    fn partition_response(&mut self) -> PartitionProduceResponse {
        let mut partition = PartitionProduceResponse::default()
            .with_index(self.random.i32())
            .with_error_code(self.random.i16())
            .with_base_offset(self.random.i64())
            .with_log_append_time_ms(self.random.i64())
            .with_unknown_tagged_fields(self.tags());
        if self.version >= 5 {
            partition.log_start_offset = self.random.i64();
        }
        if self.version >= 8 {
            partition.error_message = self.nullable_text();
            partition.record_errors = self.list(|broker| {
                BatchIndexAndErrorMessage::default()
                    .with_batch_index(broker.random.i32())
                    .with_batch_index_error_message(broker.nullable_text())
                    .with_unknown_tagged_fields(broker.tags())
            });
        }
        if self.version >= 10 && self.random.bool() {
            partition.current_leader = LeaderIdAndEpoch::default()
                .with_leader_id(self.random.i32().into())
                .with_leader_epoch(self.random.i32())
                .with_unknown_tagged_fields(self.tags());
        }
        partition
    }

    fn uuid(&mut self) -> String {
        format!("{:016x}{:016x}", self.random.next(), self.random.next())
    }
}

/// Runs `check` with a random broker and correlation id for each version, many times.
fn each_version(
    api: ApiKey,
    versions: impl IntoIterator<Item = i16>,
    mut check: impl FnMut(&mut Broker, i32),
) {
    for version in versions {
        for round in 0..ROUNDS {
            let mut broker = Broker::new(api, version, round);
            let correlation_id = broker.random.i32();
            check(&mut broker, correlation_id);
        }
    }
}

fn header(frame: &Bytes, broker: &Broker, correlation_id: i32) -> Bytes {
    let mut reader = Reader::new(frame);
    let decoded = response_header::decode(&mut reader, broker.api, broker.version);
    assert_eq!(decoded, Ok(correlation_id));
    frame.slice(frame.len() - reader.remaining()..)
}

#[test]
fn api_versions_responses() {
    each_version(ApiKey::ApiVersions, [0, 3], |broker, id| {
        let theirs = broker.api_versions();
        let body = header(&broker.encode(&theirs, id), broker, id);
        let ours = api_versions::decode_response(&mut Reader::new(&body), broker.version);
        assert_eq!(ours, Ok(oracle::api_versions(&theirs)));
    });
}

#[test]
fn metadata_responses() {
    each_version(ApiKey::Metadata, 1..=13, |broker, id| {
        let theirs = broker.metadata();
        let body = header(&broker.encode(&theirs, id), broker, id);
        let version = MetadataVersion::assume(broker.version);
        let ours = metadata::decode_response(&mut Reader::new(&body), version);
        assert_eq!(ours, Ok(oracle::metadata(&theirs)));
    });
}

#[test]
fn produce_responses() {
    each_version(ApiKey::Produce, 3..=13, |broker, id| {
        let theirs = broker.produce();
        let body = header(&broker.encode(&theirs, id), broker, id);
        let version = ProduceVersion::assume(broker.version);
        let ours = produce::decode_response(&mut Reader::new(&body), version);
        assert_eq!(ours, Ok(oracle::produce(&theirs, broker.version)));
    });
}

#[test]
fn init_producer_id_responses() {
    each_version(ApiKey::InitProducerId, 0..=5, |broker, id| {
        let theirs = InitProducerIdResponse::default()
            .with_throttle_time_ms(broker.random.i32())
            .with_error_code(broker.random.i16())
            .with_producer_id(broker.random.i64().into())
            .with_producer_epoch(broker.random.i16())
            .with_unknown_tagged_fields(broker.tags());
        let body = header(&broker.encode(&theirs, id), broker, id);
        let version = InitProducerIdVersion::assume(broker.version);
        let ours = init_producer_id::decode_response(&mut Reader::new(&body), version);
        assert_eq!(ours, Ok(oracle::init_producer_id(&theirs)));
    });
}

/// Reads a request as a broker would: length, header, body, nothing left over; and writes it again.
fn read_request<T: Decodable + Encodable>(frame: &[u8], api: ApiKey) -> (RequestHeader, T) {
    let mut rest = Bytes::copy_from_slice(frame);
    assert_eq!(rest.get_i32() as usize, rest.len());
    let version = i16::from_be_bytes([rest[2], rest[3]]);
    let header_version = match api.encoding(version) {
        Encoding::Classic => 1,
        Encoding::Flexible => 2,
    };
    let header = RequestHeader::decode(&mut rest, header_version).unwrap();
    assert_eq!((header.request_api_key, header.request_api_version), (api.code(), version));
    let body = rest.clone();
    let request = T::decode(&mut rest, version).unwrap();
    assert!(rest.is_empty());

    let mut again = BytesMut::new();
    request.encode(&mut again, version).unwrap();
    assert_eq!(again, body);
    (header, request)
}

fn client_id(header: &RequestHeader) -> &str {
    header.client_id.as_deref().unwrap()
}

#[test]
fn api_versions_requests() {
    each_version(ApiKey::ApiVersions, [0, 3], |broker, id| {
        let (client, name) = (broker.random.text(), broker.random.text());
        let frame = api_versions::encode_request(broker.version, id, &client, &name, "1.2.3");
        let (header, request) = read_request::<ApiVersionsRequest>(&frame, broker.api);
        assert_eq!((header.correlation_id, client_id(&header)), (id, &*client));
        if broker.version == 3 {
            assert_eq!(*request.client_software_name, *name);
            assert_eq!(&*request.client_software_version, "1.2.3");
        }
    });
}

#[test]
fn metadata_requests() {
    each_version(ApiKey::Metadata, 1..=13, |broker, id| {
        let client = broker.random.text();
        let names = broker.list(|broker| broker.random.text());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = broker.random.bool().then_some(&*names);
        let auto_create = broker.random.bool();
        let version = MetadataVersion::assume(broker.version);
        let frame = metadata::encode_request(version, id, &client, names, auto_create);
        let (header, request) = read_request::<MetadataRequest>(&frame, broker.api);
        assert_eq!((header.correlation_id, client_id(&header)), (id, &*client));
        assert_eq!(request.allow_auto_topic_creation, auto_create || broker.version < 4);
        assert!(!request.include_topic_authorized_operations);
        assert!(!request.include_cluster_authorized_operations);
        let read: Option<Vec<String>> = request.topics.map(|topics| {
            topics.iter().map(|topic| topic.name.as_ref().unwrap().to_string()).collect()
        });
        assert_eq!(read, names.map(|names| names.iter().map(|name| name.to_string()).collect()));
    });
}

#[test]
fn init_producer_id_requests() {
    each_version(ApiKey::InitProducerId, 0..=5, |broker, id| {
        let version = InitProducerIdVersion::assume(broker.version);
        let frame = init_producer_id::encode_request(version, id, "client");
        let (header, request) = read_request::<InitProducerIdRequest>(&frame, broker.api);
        assert_eq!((header.correlation_id, client_id(&header)), (id, "client"));
        assert_eq!(request.transactional_id, None);
        assert_eq!(request.transaction_timeout_ms, i32::MAX);
        assert_eq!((request.producer_id.0, request.producer_epoch), (-1, -1));
    });
}

#[test]
fn produce_requests() {
    each_version(ApiKey::Produce, 3..=13, |broker, id| {
        let topics = broker.list(|broker| TopicData {
            name: Arc::from(broker.random.text()),
            topic_id: std::array::from_fn(|_| broker.random.next() as u8),
            partitions: broker.list(|broker| {
                let value = vec![b'v'; broker.random.len() * 10];
                let mut builder = BatchBuilder::new();
                builder.push(broker.random.i64(), None, Some(&value), &[]);
                let batch = builder.finish();
                let header = batch.header(broker.random.i64(), broker.random.i16(), 5);
                PartitionData { index: broker.random.i32(), header, records: batch.records }
            }),
        });
        let mut segments = Vec::new();
        let version = ProduceVersion::assume(broker.version);
        let total =
            produce::encode_request(version, id, "client", -1, 1234, &topics, &mut segments);
        let frame = segments.concat();
        assert_eq!(total, frame.len());

        let (header, request) = read_request::<ProduceRequest>(&frame, broker.api);
        assert_eq!((header.correlation_id, client_id(&header)), (id, "client"));
        assert_eq!((request.acks, request.timeout_ms), (-1, 1234));
        assert_eq!(request.transactional_id, None);
        assert_eq!(request.topic_data.len(), topics.len());
        for (read, sent) in request.topic_data.iter().zip(&topics) {
            if version.uses_topic_ids() {
                assert_eq!(read.topic_id.into_bytes(), sent.topic_id);
            } else {
                assert_eq!(*read.name.0, *sent.name);
            }
            assert_eq!(read.partition_data.len(), sent.partitions.len());
            for (read, sent) in read.partition_data.iter().zip(&sent.partitions) {
                assert_eq!(read.index, sent.index);
                let records = [&sent.header[..], &sent.records].concat();
                assert_eq!(read.records.as_deref(), Some(&*records));
            }
        }
    });
}
