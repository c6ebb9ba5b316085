//! Which version of each request a connection uses.
//!
//! A broker closes the connection on a request whose version it does not speak, without an answer,
//! which cannot be told from a network fault. So a wrong version is made impossible: encoders take
//! [`ProduceVersion`], [`MetadataVersion`] and [`InitProducerIdVersion`], and those come out of
//! [`Negotiated::from_response`] only.
//!
//! The rule is "the highest version that both speak". Nothing is ever concluded from a broker's
//! minimum: from 4.0 on, brokers advertise Produce from 0 but serve it from 3 (KAFKA-18659).

mod caps;
mod versions;

use std::fmt;

pub use caps::{CapError, VersionCaps};
pub use versions::{InitProducerIdVersion, MetadataVersion, ProduceVersion};

use crate::error_code::ErrorCode;
use crate::wire::{ApiKey, api_versions};

/// Versions of an API, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    pub min: i16,
    pub max: i16,
}

impl VersionRange {
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    pub fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    fn intersection(self, other: VersionRange) -> VersionRange {
        VersionRange::new(self.min.max(other.min), self.max.min(other.max))
    }
}

/// `3-12`, or `5`.
impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min == self.max {
            true => write!(f, "{}", self.min),
            false => write!(f, "{}-{}", self.min, self.max),
        }
    }
}

/// The versions spoken here. Of ApiVersions only 0 and 3: 4 changes nothing for a producer, and
/// Azure Event Hubs resets the connection on it (franz-go 1.19).
pub fn supported(api: ApiKey) -> VersionRange {
    match api {
        ApiKey::Produce => VersionRange::new(3, 13),
        ApiKey::Metadata => VersionRange::new(1, 13),
        ApiKey::SaslHandshake => VersionRange::new(0, 1),
        ApiKey::ApiVersions => VersionRange::new(0, 3),
        ApiKey::InitProducerId => VersionRange::new(0, 5),
    }
}

/// The highest version within all ranges, `None` where there is none.
pub fn highest_common(
    broker: VersionRange,
    ours: VersionRange,
    cap: Option<VersionRange>,
) -> Option<i16> {
    let common = broker.intersection(ours);
    let common = cap.map_or(common, |cap| common.intersection(cap));
    (common.min <= common.max).then_some(common.max)
}

/// Why a connection cannot be used to produce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// The broker answered ApiVersions with an error. 35 UNSUPPORTED_VERSION asks for a lower version
    /// of ApiVersions first.
    #[error("the broker refuses ApiVersions: {0}")]
    Refused(ErrorCode),
    #[error("the broker does not offer {0}")]
    Missing(ApiKey),
    #[error("no common version of {api}: the broker has {broker}, this client {ours}{}", CapNote(*cap))]
    NoCommonVersion {
        api: ApiKey,
        broker: VersionRange,
        ours: VersionRange,
        cap: Option<VersionRange>,
    },
}

struct CapNote(Option<VersionRange>);

impl fmt::Display for CapNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cap) => write!(f, ", api_versions allows {cap}"),
            None => Ok(()),
        }
    }
}

/// What one connection speaks. Belongs to the connection and not to the broker, which may come back
/// with another version under the same node id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    produce: ProduceVersion,
    metadata: MetadataVersion,
    init_producer_id: Option<InitProducerIdVersion>,
    broker: [Option<VersionRange>; ApiKey::ALL.len()],
}

impl Negotiated {
    /// Chooses from a broker's answer. Produce and Metadata are required; InitProducerId may be
    /// missing (brokers before 0.11, some work-alikes), and then there is no idempotence.
    pub fn from_response(
        response: &api_versions::Response,
        caps: &VersionCaps,
    ) -> Result<Negotiated, NegotiationError> {
        if !response.error_code.is_ok() {
            return Err(NegotiationError::Refused(response.error_code));
        }
        let broker = ApiKey::ALL.map(|api| {
            response
                .ranges
                .iter()
                .find(|range| range.api_key == api.code())
                .map(|range| VersionRange::new(range.min, range.max))
        });
        let choose = |api| choose(api, range_of(&broker, api), caps.get(api));
        Ok(Negotiated {
            produce: ProduceVersion::new(choose(ApiKey::Produce)?),
            metadata: MetadataVersion::new(choose(ApiKey::Metadata)?),
            init_producer_id: choose(ApiKey::InitProducerId).ok().map(InitProducerIdVersion::new),
            broker,
        })
    }

    pub fn produce(&self) -> ProduceVersion {
        self.produce
    }

    pub fn metadata(&self) -> MetadataVersion {
        self.metadata
    }

    /// `None`: this broker gives no producer ids.
    pub fn init_producer_id(&self) -> Option<InitProducerIdVersion> {
        self.init_producer_id
    }

    /// What the broker advertised. The maximum of Produce tells its age: up to 4 it remembers only
    /// one batch per producer id (KAFKA-5494).
    pub fn broker_range(&self, api: ApiKey) -> Option<VersionRange> {
        range_of(&self.broker, api)
    }
}

fn range_of(
    broker: &[Option<VersionRange>; ApiKey::ALL.len()],
    api: ApiKey,
) -> Option<VersionRange> {
    ApiKey::ALL.iter().zip(broker).find(|(key, _)| **key == api).and_then(|(_, range)| *range)
}

fn choose(
    api: ApiKey,
    broker: Option<VersionRange>,
    cap: Option<VersionRange>,
) -> Result<i16, NegotiationError> {
    let broker = broker.ok_or(NegotiationError::Missing(api))?;
    let ours = supported(api);
    highest_common(broker, ours, cap).ok_or(NegotiationError::NoCommonVersion {
        api,
        broker,
        ours,
        cap,
    })
}
