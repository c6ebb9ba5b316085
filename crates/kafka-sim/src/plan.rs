//! What a seed stands for: the cluster, the configuration, the workload and the mix of faults.

use kafka::{
    Acks, Backoff, Config, HostPort, Idempotence, MILLISECOND, Micros, Partitioner, SECOND,
};

use crate::era::{ERAS, Era};
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Faults of every kind that the swarm switched on.
    Chaos,
    /// Nothing goes wrong: every record must be written, soon.
    Calm,
    /// One thing is broken and stays broken: traffic must stay bounded (I12).
    Outage(Outage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    Refused,
    BlackHole,
    ClosedOnAccept,
    SilentOnAccept,
    BadVersions,
    ClosedOnMetadata,
    NoLeader,
    UnknownTopic,
    NoProducerId,
    NotEnoughReplicas,
    NotLeader,
}

const OUTAGES: [Outage; 11] = [
    Outage::Refused,
    Outage::BlackHole,
    Outage::ClosedOnAccept,
    Outage::SilentOnAccept,
    Outage::BadVersions,
    Outage::ClosedOnMetadata,
    Outage::NoLeader,
    Outage::UnknownTopic,
    Outage::NoProducerId,
    Outage::NotEnoughReplicas,
    Outage::NotLeader,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth {
    Exists,
    /// Comes at some time in the middle.
    Later,
    /// By metadata request, if the cluster allows that.
    OnDemand,
    Never,
}

#[derive(Debug, Clone)]
pub struct TopicPlan {
    pub name: String,
    pub partitions: usize,
    pub max_message_bytes: usize,
    pub birth: Birth,
}

/// Probabilities per occasion, and mean intervals of what happens by itself (0: never).
#[derive(Debug, Clone, Default)]
pub struct Faults {
    pub cut: f64,
    pub partial_write: f64,
    pub reset: f64,
    pub stall: f64,
    pub half_open: f64,
    pub refuse: f64,
    pub black_hole: f64,
    pub resolve: f64,
    /// A broker's process refuses before it looks at the log.
    pub refuse_code: f64,
    /// … or answers with an error although the batch is in the log.
    pub late_code: f64,
    pub init_producer_id: f64,
    pub metadata: f64,
    pub throttle: f64,
    pub slow_service: f64,
    /// Records that the broker's validation refuses.
    pub poisoned_record: f64,
    pub late_timer: f64,
    /// A broker that starts knows no topics for a while.
    pub amnesia: f64,
    /// A crash that sends no reset: the machine is gone.
    pub silent_crash: f64,
    /// A broker that restarts comes back in another version.
    pub other_version: f64,
    /// A broker that restarts comes back under another address.
    pub other_address: f64,
    pub view_lag: Micros,
    pub replication_lag: Micros,
    pub leader_move: Micros,
    pub crash: Micros,
    pub freeze: Micros,
    pub isr_loss: Micros,
    pub replication_stall: Micros,
    pub grow: Micros,
    pub silence: Micros,
    pub client_sleep: Micros,
    /// `connections.max.idle.ms` of a broker.
    pub idle_close: Micros,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub mode: Mode,
    pub eras: Vec<&'static Era>,
    /// Brokers may change into these.
    pub other_eras: Vec<&'static Era>,
    pub topics: Vec<TopicPlan>,
    pub auto_create: bool,
    /// Metadata carries topic ids: not while an older broker is in the cluster.
    pub topic_ids: bool,
    pub literal_addresses: bool,
    pub config: Config,
    pub faults: Faults,
    pub latency: Micros,
    /// How long the faults last.
    pub chaos: Micros,
    pub operations: u64,
    pub operation_interval: Micros,
    pub burst: u64,
    pub largest_value: usize,
    pub cancel: f64,
    /// Close or abort in the middle of it.
    pub sudden_end: Option<SuddenEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuddenEnd {
    Close,
    Abort,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        let mode = match r.below(20) {
            0 => Mode::Calm,
            1 | 2 => Mode::Outage(*r.pick(&OUTAGES)),
            _ => Mode::Chaos,
        };
        let broker_count = r.between(1, 5) as usize;
        let one_era = r.chance(0.6);
        let first = r.pick(&ERAS);
        let eras: Vec<_> =
            (0..broker_count).map(|_| if one_era { first } else { r.pick(&ERAS) }).collect();
        let other_eras: Vec<&Era> = (0..2).map(|_| r.pick(&ERAS)).collect();
        let auto_create = r.chance(0.3);
        let mut config = config(r, broker_count);
        config.auto_create_topics = auto_create && r.chance(0.7);
        let topics = topics(r, &config, mode);
        let faults = if mode == Mode::Chaos { faults(r) } else { Faults::default() };
        let every = eras.iter().chain(&other_eras);
        let topic_ids = every.into_iter().all(|era| era.topic_ids) && r.chance(0.9);
        let chaos = match mode {
            Mode::Outage(_) => 3 * config.delivery_timeout.max(20 * SECOND),
            _ => r.magnitude(SECOND, 30 * SECOND),
        };
        let operations = r.magnitude(8, 1500);
        Self {
            seed,
            mode,
            eras,
            other_eras,
            topics,
            auto_create,
            topic_ids,
            literal_addresses: r.chance(0.5),
            largest_value: largest_value(r, &config),
            config,
            faults,
            latency: r.magnitude(50, 10 * MILLISECOND),
            chaos,
            operations,
            operation_interval: (chaos / operations).max(1),
            burst: if r.chance(0.5) { r.magnitude(1, 60) } else { 1 },
            cancel: if r.chance(0.3) { 0.05 } else { 0.0 },
            sudden_end: match r.below(16) {
                0 if mode == Mode::Chaos => Some(SuddenEnd::Close),
                1 if mode == Mode::Chaos => Some(SuddenEnd::Abort),
                _ => None,
            },
        }
    }

    /// Duplicates and disorder are excused only without it.
    pub fn idempotent(&self) -> bool {
        self.config.acks == Acks::All && self.config.idempotence != Idempotence::Off
    }
}

fn config(r: &mut Random, broker_count: usize) -> Config {
    let by_one_name = r.chance(0.3);
    let host = |host: String| HostPort { host: host.as_str().into(), port: 9092 };
    let bootstrap = match by_one_name {
        true => vec![host("boot".into())],
        false => {
            let count = r.between(1, broker_count as u64);
            (1..=count).map(|n| host(format!("node{n}.example"))).collect()
        }
    };
    let mut config = Config::new(bootstrap);
    (config.acks, config.idempotence) = match r.below(10) {
        0 => (Acks::None, Idempotence::Auto),
        1 => (Acks::Leader, Idempotence::Auto),
        2 => (Acks::All, Idempotence::Off),
        3 => (Acks::All, Idempotence::On),
        _ => (Acks::All, Idempotence::Auto),
    };
    config.linger = *r.pick(&[0, MILLISECOND, 5 * MILLISECOND, 50 * MILLISECOND]);
    config.batch_size = r.magnitude(200, 64 * 1024) as usize;
    config.max_in_flight = r.between(1, 5) as usize;
    config.max_message_size = r.magnitude(512, 128 * 1024) as usize;
    config.max_request_size = r.magnitude(512, 256 * 1024) as usize;
    config.buffer_size = r.magnitude(16 * 1024, 8 * 1024 * 1024) as usize;
    config.request_timeout = r.magnitude(200 * MILLISECOND, 8 * SECOND);
    config.delivery_timeout = config.request_timeout * r.between(1, 5) + r.below(2 * SECOND);
    config.connect_timeout = r.magnitude(200 * MILLISECOND, 5 * SECOND);
    let min = r.magnitude(10 * MILLISECOND, 200 * MILLISECOND);
    config.retry_backoff = Backoff { min, max: min * r.between(1, 8) };
    let min = r.magnitude(10 * MILLISECOND, 200 * MILLISECOND);
    config.reconnect_backoff = Backoff { min, max: min * r.between(1, 30) };
    config.idle_timeout = r.magnitude(2 * SECOND, 500 * SECOND);
    config.metadata_max_age = r.magnitude(SECOND, 300 * SECOND);
    config.partitioner = *r.pick(&[Partitioner::Murmur2, Partitioner::Crc32, Partitioner::Random]);
    config
}

fn topics(r: &mut Random, config: &Config, mode: Mode) -> Vec<TopicPlan> {
    let count = r.between(1, 4);
    let small_limit = r.chance(0.2);
    (0..count)
        .map(|n| TopicPlan {
            name: format!("{}{n}", r.pick(&["t", "events.", "a-rather-long-topic-name_"])),
            partitions: r.magnitude(1, 8) as usize,
            max_message_bytes: match small_limit {
                true => r.magnitude(100, config.batch_size as u64) as usize,
                false => 1_048_588,
            },
            birth: match r.below(10) {
                0 if mode == Mode::Chaos => Birth::Later,
                1 | 2 if mode != Mode::Calm => Birth::OnDemand,
                3 if mode != Mode::Calm => Birth::Never,
                _ => Birth::Exists,
            },
        })
        .collect()
}

fn largest_value(r: &mut Random, config: &Config) -> usize {
    let limit = config.max_message_size as u64;
    match r.below(4) {
        0 => 50,
        1 => limit as usize + 100,
        _ => r.magnitude(10, limit) as usize,
    }
}

/// Each class is on in every third seed, at a rate of any magnitude: so pairs of rare faults meet
/// without all the others in their way.
fn faults(r: &mut Random) -> Faults {
    let mut probability = |high: f64| match r.chance(0.35) {
        true => r.magnitude(1, 1000) as f64 / 1000.0 * high,
        false => 0.0,
    };
    let mut faults = Faults {
        cut: probability(1.0),
        partial_write: probability(1.0),
        reset: probability(0.1),
        stall: probability(0.1),
        half_open: probability(0.05),
        refuse: probability(1.0),
        black_hole: probability(0.5),
        resolve: probability(0.8),
        refuse_code: probability(0.5),
        late_code: probability(0.3),
        init_producer_id: probability(0.9),
        metadata: probability(0.5),
        throttle: probability(0.3),
        slow_service: probability(0.3),
        poisoned_record: probability(0.2),
        late_timer: probability(1.0),
        amnesia: probability(1.0),
        silent_crash: probability(1.0),
        other_version: probability(1.0),
        other_address: probability(1.0),
        ..Faults::default()
    };
    let mut interval = |low: Micros, high: Micros| match r.chance(0.35) {
        true => r.magnitude(low, high),
        false => 0,
    };
    faults.view_lag = interval(MILLISECOND, 3 * SECOND);
    faults.replication_lag = interval(MILLISECOND, 2 * SECOND);
    faults.leader_move = interval(50 * MILLISECOND, 10 * SECOND);
    faults.crash = interval(500 * MILLISECOND, 10 * SECOND);
    faults.freeze = interval(500 * MILLISECOND, 10 * SECOND);
    faults.isr_loss = interval(500 * MILLISECOND, 10 * SECOND);
    faults.replication_stall = interval(500 * MILLISECOND, 10 * SECOND);
    faults.grow = interval(2 * SECOND, 20 * SECOND);
    faults.silence = interval(2 * SECOND, 20 * SECOND);
    faults.client_sleep = interval(500 * MILLISECOND, 10 * SECOND);
    faults.idle_close = interval(50 * MILLISECOND, 5 * SECOND);
    faults
}
