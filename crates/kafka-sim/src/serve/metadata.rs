//! Metadata, out of what this broker has heard.

use kafka::{ConnId, MILLISECOND};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::cluster::{PORT, TopicView, View};
use crate::faults::Fault;
use crate::network::Answer;
use crate::plan::{Birth, Outage};
use crate::wire::{self, Request};
use crate::world::{Event, World};

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl World {
    pub fn serve_metadata(&mut self, conn: ConnId, request: &Request, body: &MetadataRequest) {
        if self.outage == Some(Outage::ClosedOnMetadata) {
            return self.hang_up(conn);
        }
        let version = request.version;
        let broker = self.links[&conn].broker;
        let view = self.cluster.brokers[broker].view.clone();
        let names: Vec<(Option<String>, Uuid)> = match &body.topics {
            None => view.topics.keys().map(|name| (Some(name.clone()), Uuid::nil())).collect(),
            Some(topics) => topics
                .iter()
                .map(|t| (t.name.as_ref().map(|name| name.0.as_str().to_owned()), t.topic_id))
                .collect(),
        };
        // Below 4 the request cannot say no.
        let may_create = version < 4 || body.allow_auto_topic_creation;
        let topics = names
            .into_iter()
            .map(|(name, id)| self.describe_topic(broker, version, &view, name, id, may_create))
            .collect();
        let brokers = view.brokers.iter().map(|(id, host)| {
            MetadataResponseBroker::default()
                .with_node_id((*id).into())
                .with_host(text(host))
                .with_port(i32::from(PORT))
        });
        let throttle_ms = self.throttle_ms(version >= 6);
        let response = MetadataResponse::default()
            .with_brokers(brokers.collect())
            .with_cluster_id((version >= 2).then(|| text("simulated")))
            .with_controller_id(view.brokers.first().map_or(-1, |(id, _)| *id).into())
            .with_topics(topics)
            .with_throttle_time_ms(if version >= 3 { throttle_ms } else { 0 });
        self.trace(|| {
            format!("{conn:?} ← metadata of view {}: {:?}", view.version, summary(&response))
        });
        let correlation_id = request.correlation_id;
        let frame = wire::encode(correlation_id, version, &response);
        let answer = Answer { correlation_id, throttle_ms, negotiated: false, results: Vec::new() };
        self.respond(conn, frame, answer);
    }

    fn describe_topic(
        &mut self,
        broker: usize,
        version: i16,
        view: &View,
        name: Option<String>,
        id: Uuid,
        may_create: bool,
    ) -> MetadataResponseTopic {
        let by_id = name.is_none();
        let found = match &name {
            Some(name) => view.topics.get_key_value(name),
            None => view.topics.iter().find(|(_, topic)| topic.id == id),
        };
        let answer = MetadataResponseTopic::default();
        let answer = match &name {
            Some(name) => answer.with_name(Some(TopicName(text(name)))),
            None => answer.with_topic_id(id).with_name(None),
        };
        let unknown = if by_id { 100 } else { 3 };
        let broken = self.net.chance(self.plan.faults.metadata);
        let code = match (self.outage, broken) {
            (Some(Outage::UnknownTopic), _) => Some(unknown),
            (_, true) => Some(*self.net.pick(&[unknown, 5])),
            _ => None,
        };
        if let Some(code) = code {
            return answer.with_error_code(code);
        }
        let Some((name, topic)) = found else {
            let created = name.is_some_and(|name| may_create && self.create_on_demand(&name));
            let first = if self.cluster.brokers[broker].era.kraft { 3 } else { 5 };
            return answer.with_error_code(if created { first } else { unknown });
        };
        let id = match version >= 10 && self.plan.topic_ids {
            true => topic.id,
            false => Uuid::nil(),
        };
        answer
            .with_name(Some(TopicName(text(name))))
            .with_topic_id(id)
            .with_partitions(self.describe_partitions(version, view, topic))
    }

    fn describe_partitions(
        &self,
        version: i16,
        view: &View,
        topic: &TopicView,
    ) -> Vec<MetadataResponsePartition> {
        let known = |leader: &usize| view.brokers.iter().any(|(id, _)| *id == *leader as i32 + 1);
        let no_leader = self.outage == Some(Outage::NoLeader);
        let replicas: Vec<_> = (1..=self.cluster.brokers.len() as i32).map(Into::into).collect();
        let describe = |(index, (leader, epoch)): (usize, &(Option<usize>, i32))| {
            let leader = leader.filter(known).filter(|_| !no_leader);
            MetadataResponsePartition::default()
                .with_error_code(if leader.is_some() { 0 } else { 5 })
                .with_partition_index(index as i32)
                .with_leader_id(leader.map_or(-1, |leader| leader as i32 + 1).into())
                .with_leader_epoch(if version >= 7 { *epoch } else { -1 })
                .with_replica_nodes(replicas.clone())
                .with_isr_nodes(replicas.clone())
        };
        topic.partitions.iter().enumerate().map(describe).collect()
    }

    /// `auto.create.topics.enable`.
    fn create_on_demand(&mut self, name: &str) -> bool {
        let wanted = |topic: &crate::cluster::Topic| {
            topic.name == name && matches!(topic.plan.birth, Birth::OnDemand | Birth::Exists)
        };
        let Some(index) = self.cluster.topics.iter().position(wanted) else { return false };
        if !self.plan.auto_create {
            return false;
        }
        if !self.cluster.topics[index].exists {
            let pause = self.fate.magnitude(MILLISECOND, 300 * MILLISECOND);
            self.queue.push(self.now + pause, Event::Fault(Fault::Create(index)));
        }
        true
    }
}

type TopicSummary = (String, i16, Vec<(i32, i32)>);

fn summary(response: &MetadataResponse) -> Vec<TopicSummary> {
    let topic = |topic: &MetadataResponseTopic| {
        let name = topic.name.as_ref().map(|name| name.0.as_str().to_owned()).unwrap_or_default();
        let leader = |p: &MetadataResponsePartition| (p.leader_id.0, p.leader_epoch);
        (name, topic.error_code, topic.partitions.iter().map(leader).collect())
    };
    response.topics.iter().map(topic).collect()
}
