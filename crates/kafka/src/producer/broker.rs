//! The brokers that are known: those of `bootstrap_servers`, and those that the cluster named.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::{ConnId, HostPort, Micros, QueryId};

/// Brokers of a cluster are told apart by node id, never by address: an address may move to
/// another node. Bootstrap servers have no node id yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BrokerKey {
    Node(i32),
    Bootstrap(usize),
}

#[derive(Debug)]
pub(super) struct Broker {
    pub endpoint: HostPort,
    /// Addresses of the name that have not been tried since the last look-up.
    pub addresses: VecDeque<SocketAddr>,
    pub query: Option<QueryId>,
    pub conn: Option<ConnId>,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Why the last of them failed.
    pub last_error: Option<Arc<str>>,
    pub retry_at: Micros,
    pub last_attempt: Micros,
    /// Named by the latest metadata answer.
    pub listed: bool,
}

impl Broker {
    pub fn new(endpoint: HostPort) -> Self {
        Self {
            endpoint,
            addresses: VecDeque::new(),
            query: None,
            conn: None,
            failures: 0,
            last_error: None,
            retry_at: 0,
            last_attempt: 0,
            listed: true,
        }
    }

    /// A connection is there or under way.
    pub fn is_engaged(&self) -> bool {
        self.conn.is_some() || self.query.is_some()
    }
}

#[derive(Debug)]
pub(super) struct Brokers {
    pub table: BTreeMap<BrokerKey, Broker>,
}

impl Brokers {
    pub fn new(bootstrap: &[HostPort]) -> Self {
        let brokers = bootstrap.iter().enumerate();
        Self {
            table: brokers
                .map(|(i, endpoint)| (BrokerKey::Bootstrap(i), Broker::new(endpoint.clone())))
                .collect(),
        }
    }

    pub fn get(&self, key: BrokerKey) -> Option<&Broker> {
        self.table.get(&key)
    }

    pub fn get_mut(&mut self, key: BrokerKey) -> Option<&mut Broker> {
        self.table.get_mut(&key)
    }

    /// Whether the latest metadata names this node.
    pub fn is_listed(&self, node: i32) -> bool {
        self.get(BrokerKey::Node(node)).is_some_and(|broker| broker.listed)
    }

    /// Adds a node, or notes that it has moved. Returns the connection to an old address.
    pub fn learn(&mut self, node: i32, endpoint: HostPort) -> Option<ConnId> {
        let broker = self
            .table
            .entry(BrokerKey::Node(node))
            .or_insert_with(|| Broker::new(endpoint.clone()));
        broker.listed = true;
        if broker.endpoint == endpoint {
            return None;
        }
        broker.endpoint = endpoint;
        broker.addresses.clear();
        broker.query = None;
        broker.failures = 0;
        broker.retry_at = 0;
        broker.conn.take()
    }

    /// `host:port` for messages, IPv6 in brackets.
    pub fn name(&self, key: BrokerKey) -> String {
        let Some(broker) = self.get(key) else { return "a former broker".into() };
        let HostPort { host, port } = &broker.endpoint;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}
