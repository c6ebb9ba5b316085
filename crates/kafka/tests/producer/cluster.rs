//! One producer and a scripted cluster in one process, with a clock that the test moves.
//!
//! The brokers answer ApiVersions, Metadata and InitProducerId by themselves; Produce requests wait
//! until the test answers them. They speak through `kafka-protocol`, a codec of other people.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka::record_batch::{BatchHeader, HEADER_LEN, Records};
use kafka::{
    Completion, Config, ConnId, Event, HostPort, Input, Micros, Output, Producer, Record, SECOND,
};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, InitProducerIdRequest, InitProducerIdResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, ProducerId, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

/// Versions that a scripted broker offers: Produce, Metadata, InitProducerId.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    pub produce: i16,
    pub metadata: i16,
    pub init_producer_id: Option<i16>,
}

pub const KAFKA_2_8: Offer = Offer { produce: 9, metadata: 11, init_producer_id: Some(4) };
pub const KAFKA_3_9: Offer = Offer { produce: 11, metadata: 12, init_producer_id: Some(5) };
pub const KAFKA_0_11: Offer = Offer { produce: 3, metadata: 4, init_producer_id: Some(0) };

/// One batch of a Produce request.
#[derive(Debug, Clone)]
pub struct Batch {
    pub topic: String,
    pub partition: i32,
    pub header: BatchHeader,
    pub values: Vec<Bytes>,
    pub bytes: Bytes,
}

#[derive(Debug, Clone)]
pub struct ProduceCall {
    pub conn: ConnId,
    pub node: i32,
    pub correlation_id: i32,
    pub version: i16,
    pub batches: Vec<Batch>,
}

pub struct Topic {
    /// The leader of each partition; −1 for none.
    pub leaders: Vec<i32>,
    pub epoch: i32,
}

pub struct Cluster {
    pub producer: Producer,
    pub now: Micros,
    pub offer: Offer,
    pub nodes: Vec<i32>,
    /// Nodes that refuse connections.
    pub refusing: Vec<i32>,
    /// Nodes that accept connections and say nothing.
    pub silent: Vec<i32>,
    pub topics: BTreeMap<String, Topic>,
    /// Topics that this node does not know (yet).
    pub hidden: BTreeMap<i32, Vec<String>>,
    pub throttle_ms: i32,
    pub pid_error: i16,
    connections: BTreeMap<ConnId, (i32, BytesMut)>,
    pub calls: VecDeque<ProduceCall>,
    pub completions: Vec<Completion>,
    pub events: Vec<Event>,
    pub metadata_requests: Vec<(Micros, i32, Vec<String>)>,
    pub pid_requests: usize,
    pub connects: Vec<(Micros, i32)>,
}

pub fn port(node: i32) -> u16 {
    9000 + node as u16
}

impl Cluster {
    pub fn new(nodes: &[i32], configure: impl FnOnce(&mut Config)) -> Self {
        let bootstrap = HostPort { host: "127.0.0.1".into(), port: port(nodes[0]) };
        let mut config = Config::new(vec![bootstrap]);
        configure(&mut config);
        Self {
            producer: Producer::new(config, 7),
            now: 1_000 * SECOND,
            offer: KAFKA_3_9,
            nodes: nodes.to_vec(),
            refusing: vec![],
            silent: vec![],
            topics: BTreeMap::new(),
            hidden: BTreeMap::new(),
            throttle_ms: 0,
            pid_error: 0,
            connections: BTreeMap::new(),
            calls: VecDeque::new(),
            completions: vec![],
            events: vec![],
            metadata_requests: vec![],
            pid_requests: 0,
            connects: vec![],
        }
    }

    pub fn topic(mut self, name: &str, leaders: &[i32]) -> Self {
        self.topics.insert(name.into(), Topic { leaders: leaders.to_vec(), epoch: 0 });
        self
    }

    /// Appends one record without a key to partition 0 of the topic, and lets things happen.
    pub fn send(&mut self, topic: &str, value: &[u8], token: u64) {
        self.append(topic, Some(0), value, token).expect("the record is taken");
        self.run();
    }

    pub fn append(
        &mut self,
        topic: &str,
        partition: Option<i32>,
        value: &[u8],
        token: u64,
    ) -> Result<(), kafka::AppendError> {
        let record = Record {
            topic,
            partition,
            key: None,
            value: Some(value),
            headers: &[],
            timestamp_ms: 1_700_000_000_000,
            token,
        };
        self.producer.append(self.now, &[record])
    }

    /// Moves the clock in steps of a millisecond where a timer wants it, and runs everything.
    pub fn pass(&mut self, time: Micros) {
        let end = self.now + time;
        self.run();
        while let Some(at) = self.producer.next_timer().filter(|at| *at <= end) {
            assert!(at > self.now, "a timer in the past");
            self.now = at;
            self.producer.handle(self.now, Input::Timer);
            self.run();
        }
        self.now = end;
    }

    /// Lets the producer and the brokers talk until both are quiet.
    pub fn run(&mut self) {
        for _ in 0..10_000 {
            let Some(output) = self.producer.poll(self.now) else { return };
            match output {
                Output::Resolve { .. } => panic!("only literal addresses here"),
                Output::Connect { conn, addr, .. } => self.connect(conn, addr),
                Output::Transmit { conn } => self.transmit(conn),
                Output::Close { conn } => {
                    self.connections.remove(&conn);
                }
                Output::Completed(completion) => self.completions.push(completion),
                Output::Event(event) => self.events.push(event),
            }
        }
        panic!("the producer never rests");
    }

    fn connect(&mut self, conn: ConnId, addr: SocketAddr) {
        let node = i32::from(addr.port()) - 9000;
        self.connects.push((self.now, node));
        if self.refusing.contains(&node) {
            let reason = "connection refused".to_string();
            return self.producer.handle(self.now, Input::Closed { conn, reason });
        }
        self.connections.insert(conn, (node, BytesMut::new()));
        self.producer.handle(self.now, Input::Connected { conn });
    }

    fn transmit(&mut self, conn: ConnId) {
        let bytes: Vec<u8> = self.producer.transmit(conn).flat_map(|s| s.to_vec()).collect();
        self.producer.handle(self.now, Input::Transmitted { conn, bytes: bytes.len() });
        let Some((node, buffer)) = self.connections.get_mut(&conn) else { return };
        let node = *node;
        buffer.extend_from_slice(&bytes);
        let mut frames = vec![];
        while buffer.len() >= 4 {
            let len = u32::from_be_bytes(buffer[..4].try_into().unwrap()) as usize;
            if buffer.len() < 4 + len {
                break;
            }
            buffer.advance(4);
            frames.push(buffer.split_to(len).freeze());
        }
        if !self.silent.contains(&node) {
            for frame in frames {
                self.serve(conn, node, frame);
            }
        }
    }

    fn serve(&mut self, conn: ConnId, node: i32, mut frame: Bytes) {
        let key = ApiKey::try_from(i16::from_be_bytes([frame[0], frame[1]])).expect("a known API");
        let version = i16::from_be_bytes([frame[2], frame[3]]);
        let header = RequestHeader::decode(&mut frame, key.request_header_version(version))
            .expect("a readable header");
        let correlation_id = header.correlation_id;
        match key {
            ApiKey::ApiVersions => {
                let range = |key: i16, min: i16, max: i16| {
                    ApiVersion::default()
                        .with_api_key(key)
                        .with_min_version(min)
                        .with_max_version(max)
                };
                let mut keys =
                    vec![range(0, 0, self.offer.produce), range(3, 0, self.offer.metadata)];
                keys.extend(self.offer.init_producer_id.map(|max| range(22, 0, max)));
                keys.push(range(18, 0, 3));
                let response = ApiVersionsResponse::default().with_api_keys(keys);
                self.reply::<ApiVersionsResponse>(conn, correlation_id, version, &response);
            }
            ApiKey::Metadata => {
                let request = MetadataRequest::decode(&mut frame, version).expect("readable");
                let names: Vec<String> = request
                    .topics
                    .unwrap_or_default()
                    .iter()
                    .map(|t| t.name.as_ref().expect("asked by name").to_string())
                    .collect();
                self.metadata_requests.push((self.now, node, names.clone()));
                let response = self.metadata(node, &names);
                self.reply::<MetadataResponse>(conn, correlation_id, version, &response);
            }
            ApiKey::InitProducerId => {
                InitProducerIdRequest::decode(&mut frame, version).expect("readable");
                self.pid_requests += 1;
                let response = match self.pid_error {
                    0 => InitProducerIdResponse::default().with_producer_id(ProducerId(4000)),
                    code => InitProducerIdResponse::default().with_error_code(code),
                };
                self.reply::<InitProducerIdResponse>(conn, correlation_id, version, &response);
            }
            ApiKey::Produce => {
                let request = ProduceRequest::decode(&mut frame, version).expect("readable");
                let mut batches = vec![];
                for topic in request.topic_data {
                    for partition in topic.partition_data {
                        let bytes = partition.records.expect("records");
                        let (header, rest) = BatchHeader::decode(&bytes).expect("a batch");
                        let records = Records::new(rest, header.base_timestamp, header.count);
                        let values = records
                            .map(|r| Bytes::copy_from_slice(r.unwrap().value.unwrap_or_default()))
                            .collect();
                        assert!(bytes.len() > HEADER_LEN);
                        batches.push(Batch {
                            topic: topic.name.to_string(),
                            partition: partition.index,
                            header,
                            values,
                            bytes,
                        });
                    }
                }
                if request.acks != 0 {
                    let call = ProduceCall { conn, node, correlation_id, version, batches };
                    self.calls.push_back(call);
                }
            }
            other => panic!("nobody asked for {other:?}"),
        }
        assert!(frame.is_empty() || key == ApiKey::ApiVersions, "bytes after the request");
    }

    fn metadata(&self, node: i32, names: &[String]) -> MetadataResponse {
        let brokers = self.nodes.iter().map(|id| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(*id))
                .with_host("127.0.0.1".into())
                .with_port(i32::from(port(*id)))
        });
        let topics = names.iter().map(|name| {
            let answer = MetadataResponseTopic::default()
                .with_name(Some(TopicName(StrBytes::from_string(name.clone()))));
            let hidden = self.hidden.get(&node).is_some_and(|hidden| hidden.contains(name));
            let Some(topic) = self.topics.get(name).filter(|_| !hidden) else {
                return answer.with_error_code(3);
            };
            let partitions = topic.leaders.iter().enumerate().map(|(i, leader)| {
                MetadataResponsePartition::default()
                    .with_partition_index(i as i32)
                    .with_leader_id(BrokerId(*leader))
                    .with_leader_epoch(topic.epoch)
                    .with_error_code(if *leader < 0 { 5 } else { 0 })
            });
            answer.with_partitions(partitions.collect())
        });
        MetadataResponse::default()
            .with_brokers(brokers.collect())
            .with_controller_id(BrokerId(self.nodes[0]))
            .with_topics(topics.collect())
    }

    fn reply<T: Encodable + HeaderVersion>(
        &mut self,
        conn: ConnId,
        correlation_id: i32,
        version: i16,
        response: &T,
    ) {
        let mut body = BytesMut::new();
        ResponseHeader::default()
            .with_correlation_id(correlation_id)
            .encode(&mut body, T::header_version(version))
            .expect("encodable");
        response.encode(&mut body, version).expect("encodable");
        let mut frame = BytesMut::new();
        frame.put_u32(body.len() as u32);
        frame.extend_from_slice(&body);
        self.producer.handle(self.now, Input::Received { conn, bytes: &frame });
    }

    /// The oldest unanswered Produce request.
    pub fn call(&mut self) -> ProduceCall {
        self.calls.pop_front().expect("a Produce request")
    }

    /// Answers all partitions of a request with a code, and an offset for success.
    pub fn answer(&mut self, call: &ProduceCall, code: i16, base_offset: i64) {
        self.answer_with(call, |answer| {
            answer.with_error_code(code).with_base_offset(if code == 0 { base_offset } else { -1 })
        });
    }

    pub fn answer_with(
        &mut self,
        call: &ProduceCall,
        f: impl Fn(PartitionProduceResponse) -> PartitionProduceResponse,
    ) {
        let topics = call.batches.iter().map(|batch| {
            let answer = PartitionProduceResponse::default()
                .with_index(batch.partition)
                .with_log_append_time_ms(-1);
            TopicProduceResponse::default()
                .with_name(TopicName(StrBytes::from_string(batch.topic.clone())))
                .with_partition_responses(vec![f(answer)])
        });
        let response = ProduceResponse::default()
            .with_responses(topics.collect())
            .with_throttle_time_ms(self.throttle_ms);
        self.reply::<ProduceResponse>(call.conn, call.correlation_id, call.version, &response);
        self.run();
    }

    /// NOT_LEADER_OR_FOLLOWER with the new leader and its address (KIP-951).
    pub fn answer_moved(&mut self, call: &ProduceCall, leader: i32, epoch: i32) {
        let topics = call.batches.iter().map(|batch| {
            let answer = PartitionProduceResponse::default()
                .with_index(batch.partition)
                .with_error_code(6)
                .with_base_offset(-1)
                .with_current_leader(
                    LeaderIdAndEpoch::default()
                        .with_leader_id(BrokerId(leader))
                        .with_leader_epoch(epoch),
                );
            TopicProduceResponse::default()
                .with_name(TopicName(StrBytes::from_string(batch.topic.clone())))
                .with_partition_responses(vec![answer])
        });
        let endpoint = NodeEndpoint::default()
            .with_node_id(BrokerId(leader))
            .with_host("127.0.0.1".into())
            .with_port(i32::from(port(leader)));
        let response = ProduceResponse::default()
            .with_responses(topics.collect())
            .with_node_endpoints(vec![endpoint]);
        self.reply::<ProduceResponse>(call.conn, call.correlation_id, call.version, &response);
        self.run();
    }

    pub fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    pub fn only_connection(&self) -> ConnId {
        assert_eq!(self.connections.len(), 1);
        *self.connections.first_key_value().expect("one connection").0
    }

    /// The broker's side of a connection ends.
    pub fn cut(&mut self, conn: ConnId) {
        self.connections.remove(&conn);
        let reason = "reset by peer".to_string();
        self.producer.handle(self.now, Input::Closed { conn, reason });
        self.run();
    }

    /// Every connection to a node ends and no new one is accepted.
    pub fn kill(&mut self, node: i32) {
        self.refusing.push(node);
        let ends: Vec<ConnId> =
            self.connections.iter().filter(|(_, (n, _))| *n == node).map(|(id, _)| *id).collect();
        for conn in ends {
            self.cut(conn);
        }
    }

    /// The only completion so far, taken out.
    pub fn completion(&mut self) -> Completion {
        assert_eq!(self.completions.len(), 1, "{:?}", self.completions);
        self.completions.remove(0)
    }

    /// Appends and acknowledges one record, so that the log knows us.
    pub fn warm_up(&mut self, topic: &str) {
        self.send(topic, b"first", 0);
        let call = self.call();
        self.answer(&call, 0, 0);
        self.completion();
    }
}
