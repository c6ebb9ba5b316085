//! What a broker of each era can do (kafka-core.md §1.1) and how it treats producer ids (§3.1).

/// What a log without state for a producer id says to a first batch that does not start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownProducer {
    /// 45 OUT_OF_ORDER_SEQUENCE_NUMBER.
    OutOfOrder,
    /// 59 UNKNOWN_PRODUCER_ID.
    Refused,
    /// Takes any sequence number (KAFKA-14359).
    Accepted,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Era {
    pub name: &'static str,
    /// Advertised; see [`Era::serves_produce`].
    pub produce: (i16, i16),
    pub metadata: (i16, i16),
    pub api_versions: (i16, i16),
    pub init_producer_id: (i16, i16),
    pub unknown_producer: UnknownProducer,
    /// How many of the last batches of a producer are remembered per log.
    pub remembered: usize,
    /// First answer about a topic that is just being created: 3 with KRaft, 5 with ZooKeeper.
    pub kraft: bool,
    pub topic_ids: bool,
}

impl Era {
    /// 4.x advertises Produce from 0 on (KAFKA-18659), but closes the connection below 3.
    pub fn serves_produce(&self, version: i16) -> bool {
        let min = if self.produce.1 >= 12 { 3 } else { self.produce.0 };
        (min..=self.produce.1).contains(&version)
    }
}

const fn era(
    name: &'static str,
    [produce, metadata, api_versions, init_producer_id]: [i16; 4],
    unknown_producer: UnknownProducer,
    remembered: usize,
) -> Era {
    Era {
        name,
        produce: (0, produce),
        metadata: (0, metadata),
        api_versions: (0, api_versions),
        init_producer_id: (0, init_producer_id),
        unknown_producer,
        remembered,
        kraft: produce >= 11,
        topic_ids: metadata >= 10,
    }
}

use UnknownProducer::{Accepted, OutOfOrder, Refused};

pub static ERAS: [Era; 9] = [
    era("0.11", [3, 4, 1, 0], OutOfOrder, 1),
    era("1.0", [5, 5, 1, 0], Refused, 5),
    era("2.0", [6, 6, 2, 1], Refused, 5),
    era("2.4", [8, 9, 3, 2], Refused, 5),
    era("2.8", [9, 11, 3, 4], Accepted, 5),
    era("3.9", [11, 12, 4, 5], Accepted, 5),
    era("4.0", [12, 13, 4, 5], Accepted, 5),
    era("4.3", [13, 13, 4, 5], Accepted, 5),
    era("4.4", [13, 13, 5, 5], Accepted, 5),
];
