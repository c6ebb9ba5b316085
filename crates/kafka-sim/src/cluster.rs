//! The truth about the cluster, and what each broker has heard of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use kafka::Micros;
use uuid::Uuid;

use crate::era::Era;
use crate::log::Log;
use crate::plan::{Birth, Plan, TopicPlan};

/// A topic's place in the plan, and a partition.
pub type PartitionRef = (usize, usize);

#[derive(Debug, Default)]
pub struct Partition {
    /// `None` while no replica is up.
    pub leader: Option<usize>,
    pub leader_epoch: i32,
    pub log: Log,
    /// Fewer replicas than `min.insync.replicas`.
    pub below_min_isr: bool,
    /// Followers fetch nothing before this time.
    pub replication_stalled_until: Micros,
}

#[derive(Debug)]
pub struct Topic {
    pub name: String,
    pub id: Uuid,
    pub exists: bool,
    pub plan: TopicPlan,
    pub partitions: Vec<Partition>,
}

#[derive(Debug)]
pub struct Broker {
    pub era: &'static Era,
    pub up: bool,
    /// Counts its processes: connections and work belong to one of them.
    pub incarnation: u64,
    pub frozen_until: Micros,
    /// How often it has moved to another address.
    pub moves: u8,
    pub view: Rc<View>,
}

/// The metadata cache of a broker.
#[derive(Debug, Default)]
pub struct View {
    pub version: u64,
    /// Node ids (from 1) with their host.
    pub brokers: Vec<(i32, String)>,
    pub topics: BTreeMap<String, TopicView>,
}

#[derive(Debug)]
pub struct TopicView {
    pub id: Uuid,
    /// Leader as an index of brokers, and its epoch.
    pub partitions: Vec<(Option<usize>, i32)>,
}

#[derive(Debug)]
pub struct Cluster {
    pub brokers: Vec<Broker>,
    pub topics: Vec<Topic>,
    pub next_producer_id: i64,
    version: u64,
    literal_addresses: bool,
}

pub const PORT: u16 = 9092;

impl Cluster {
    pub fn new(plan: &Plan) -> Self {
        let broker = |era: &&'static Era| Broker {
            era,
            up: true,
            incarnation: 0,
            frozen_until: 0,
            moves: 0,
            view: Rc::default(),
        };
        let topic = |(index, plan): (usize, &TopicPlan)| Topic {
            name: plan.name.clone(),
            id: Uuid::from_u64_pair(0x6e67_696e_782d_6b61, 1 + index as u64),
            exists: false,
            plan: plan.clone(),
            partitions: Vec::new(),
        };
        let mut cluster = Self {
            brokers: plan.eras.iter().map(broker).collect(),
            topics: plan.topics.iter().enumerate().map(topic).collect(),
            next_producer_id: 1000,
            version: 0,
            literal_addresses: plan.literal_addresses,
        };
        for index in 0..cluster.topics.len() {
            if cluster.topics[index].plan.birth == Birth::Exists {
                cluster.create(index);
            }
        }
        let view = cluster.snapshot();
        cluster.brokers.iter_mut().for_each(|broker| broker.view = view.clone());
        cluster
    }

    pub fn create(&mut self, index: usize) {
        let topic = &mut self.topics[index];
        topic.exists = true;
        while topic.partitions.len() < topic.plan.partitions {
            topic.partitions.push(Partition::default());
        }
        self.elect();
    }

    /// Gives every partition without a leader one of the brokers that are up, spread evenly.
    pub fn elect(&mut self) {
        let up: Vec<usize> = (0..self.brokers.len()).filter(|b| self.brokers[*b].up).collect();
        if up.is_empty() {
            return;
        }
        let mut next = 0;
        for topic in &mut self.topics {
            for partition in topic.partitions.iter_mut().filter(|p| p.leader.is_none()) {
                partition.leader = Some(up[next % up.len()]);
                partition.leader_epoch += 1;
                next += 1;
            }
        }
    }

    pub fn partition(&self, (topic, partition): PartitionRef) -> &Partition {
        &self.topics[topic].partitions[partition]
    }

    pub fn partition_mut(&mut self, (topic, partition): PartitionRef) -> &mut Partition {
        &mut self.topics[topic].partitions[partition]
    }

    pub fn partitions(&self) -> Vec<PartitionRef> {
        let of_topic = |(t, topic): (usize, &Topic)| {
            (0..topic.partitions.len()).map(move |p| (t, p)).collect::<Vec<_>>()
        };
        self.topics.iter().enumerate().flat_map(of_topic).collect()
    }

    /// What a broker that hears everything knows now.
    pub fn snapshot(&mut self) -> Rc<View> {
        self.version += 1;
        let brokers = (0..self.brokers.len())
            .filter(|b| self.brokers[*b].up)
            .map(|b| (b as i32 + 1, self.host(b)))
            .collect();
        let topic = |topic: &Topic| {
            let partitions = topic.partitions.iter().map(|p| (p.leader, p.leader_epoch)).collect();
            (topic.name.clone(), TopicView { id: topic.id, partitions })
        };
        let existing = self.topics.iter().filter(|topic| topic.exists);
        Rc::new(View { version: self.version, brokers, topics: existing.map(topic).collect() })
    }

    pub fn host(&self, broker: usize) -> String {
        match self.literal_addresses {
            true => self.address(broker).ip().to_string(),
            false => format!("node{}.example", broker + 1),
        }
    }

    pub fn address(&self, broker: usize) -> SocketAddr {
        let ip = Ipv4Addr::new(10, 0, self.brokers[broker].moves, broker as u8 + 1);
        SocketAddr::new(IpAddr::V4(ip), PORT)
    }

    pub fn at_address(&self, address: SocketAddr) -> Option<usize> {
        (0..self.brokers.len()).find(|b| self.address(*b) == address)
    }

    /// The name service: `nodeN.example`, and `boot` for all.
    pub fn resolve(&self, host: &str) -> Vec<SocketAddr> {
        let all = 0..self.brokers.len();
        match host {
            "boot" => all.map(|b| self.address(b)).collect(),
            _ => all
                .filter(|b| format!("node{}.example", b + 1) == host)
                .map(|b| self.address(b))
                .collect(),
        }
    }
}
