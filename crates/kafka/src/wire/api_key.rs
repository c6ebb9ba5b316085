//! The requests spoken here, and from which version on they are flexible.

use std::fmt;

/// An API of the Kafka protocol, with its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ApiKey {
    Produce = 0,
    Metadata = 3,
    SaslHandshake = 17,
    ApiVersions = 18,
    InitProducerId = 22,
}

/// How lengths are written, and whether structures end in tagged fields (KIP-482).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// 16-bit lengths of strings, 32-bit lengths of bytes and arrays, -1 for null; no tagged fields.
    Classic,
    /// Unsigned varints holding length + 1, 0 for null; every structure ends in tagged fields.
    Flexible,
}

impl Encoding {
    /// Bytes of the shortest string.
    pub(super) const fn min_string(self) -> usize {
        match self {
            Encoding::Classic => 2,
            Encoding::Flexible => 1,
        }
    }

    /// Bytes of the shortest array.
    pub(super) const fn min_array(self) -> usize {
        match self {
            Encoding::Classic => 4,
            Encoding::Flexible => 1,
        }
    }

    /// Bytes of a structure's end.
    pub(super) const fn min_tagged_fields(self) -> usize {
        match self {
            Encoding::Classic => 0,
            Encoding::Flexible => 1,
        }
    }
}

impl ApiKey {
    pub const ALL: [ApiKey; 5] = [
        ApiKey::Produce,
        ApiKey::Metadata,
        ApiKey::SaslHandshake,
        ApiKey::ApiVersions,
        ApiKey::InitProducerId,
    ];

    /// The number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The name in the protocol guide.
    pub fn name(self) -> &'static str {
        match self {
            ApiKey::Produce => "Produce",
            ApiKey::Metadata => "Metadata",
            ApiKey::SaslHandshake => "SaslHandshake",
            ApiKey::ApiVersions => "ApiVersions",
            ApiKey::InitProducerId => "InitProducerId",
        }
    }

    /// The first version with [`Encoding::Flexible`]; `None` where no version is.
    pub fn first_flexible_version(self) -> Option<i16> {
        match self {
            ApiKey::Produce | ApiKey::Metadata => Some(9),
            ApiKey::SaslHandshake => None,
            ApiKey::ApiVersions => Some(3),
            ApiKey::InitProducerId => Some(2),
        }
    }

    /// The encoding of both the request and the response body in `version`.
    pub fn encoding(self, version: i16) -> Encoding {
        match self.first_flexible_version() {
            Some(first) if version >= first => Encoding::Flexible,
            _ => Encoding::Classic,
        }
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
