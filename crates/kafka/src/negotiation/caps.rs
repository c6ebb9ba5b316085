//! The `api_versions` directive: an operator's limits to what negotiation may choose.

use super::{VersionRange, highest_common, supported};
use crate::wire::ApiKey;

/// A limit per API; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionCaps {
    produce: Option<VersionRange>,
    metadata: Option<VersionRange>,
    sasl_handshake: Option<VersionRange>,
    api_versions: Option<VersionRange>,
    init_producer_id: Option<VersionRange>,
}

/// What is wrong with one parameter of `api_versions`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapError {
    #[error("\"{0}\" is not of the form API=VERSION or API=MIN-MAX, such as \"produce=3-12\"")]
    Syntax(String),
    #[error(
        "unknown API \"{0}\", use one of \"produce\", \"metadata\", \"api_versions\", \
         \"init_producer_id\", \"sasl_handshake\""
    )]
    UnknownApi(String),
    #[error("the versions \"{0}\" are the wrong way round")]
    Reversed(String),
    #[error("\"{0}\" is given twice")]
    Duplicate(String),
    #[error("\"{text}\" allows no version that is supported: {api} has {supported}")]
    Unsupported { text: String, api: ApiKey, supported: &'static str },
}

impl VersionCaps {
    pub fn set(&mut self, api: ApiKey, range: VersionRange) {
        *self.slot(api) = Some(range);
    }

    pub fn get(&self, api: ApiKey) -> Option<VersionRange> {
        match api {
            ApiKey::Produce => self.produce,
            ApiKey::Metadata => self.metadata,
            ApiKey::SaslHandshake => self.sasl_handshake,
            ApiKey::ApiVersions => self.api_versions,
            ApiKey::InitProducerId => self.init_producer_id,
        }
    }

    /// Takes one parameter of the directive: `produce=3-12`, or `metadata=5` for just this version.
    /// Names match without case.
    pub fn parse_one(&mut self, text: &str) -> Result<(), CapError> {
        let syntax = || CapError::Syntax(text.to_owned());
        let (name, versions) = text.split_once('=').ok_or_else(syntax)?;
        let api = api_by_name(name).ok_or_else(|| CapError::UnknownApi(name.to_owned()))?;
        let range = match versions.split_once('-') {
            Some((min, max)) => VersionRange::new(
                parse_version(min).ok_or_else(syntax)?,
                parse_version(max).ok_or_else(syntax)?,
            ),
            None => {
                let version = parse_version(versions).ok_or_else(syntax)?;
                VersionRange::new(version, version)
            }
        };
        if range.min > range.max {
            return Err(CapError::Reversed(versions.to_owned()));
        }
        if !overlaps(api, range) {
            return Err(CapError::Unsupported {
                text: text.to_owned(),
                api,
                supported: supported_text(api),
            });
        }
        let slot = self.slot(api);
        if slot.is_some() {
            return Err(CapError::Duplicate(name.to_owned()));
        }
        *slot = Some(range);
        Ok(())
    }

    /// The version of the first ApiVersions request on a connection: 3, or 0 where capped.
    pub fn first_api_versions_request(&self) -> i16 {
        match self.api_versions {
            Some(cap) if !cap.contains(3) => 0,
            _ => 3,
        }
    }

    fn slot(&mut self, api: ApiKey) -> &mut Option<VersionRange> {
        match api {
            ApiKey::Produce => &mut self.produce,
            ApiKey::Metadata => &mut self.metadata,
            ApiKey::SaslHandshake => &mut self.sasl_handshake,
            ApiKey::ApiVersions => &mut self.api_versions,
            ApiKey::InitProducerId => &mut self.init_producer_id,
        }
    }
}

fn api_by_name(name: &str) -> Option<ApiKey> {
    const NAMES: [(&str, ApiKey); 5] = [
        ("produce", ApiKey::Produce),
        ("metadata", ApiKey::Metadata),
        ("api_versions", ApiKey::ApiVersions),
        ("init_producer_id", ApiKey::InitProducerId),
        ("sasl_handshake", ApiKey::SaslHandshake),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, api)| *api)
}

/// Digits only: `i16::from_str` would take a sign too.
fn parse_version(text: &str) -> Option<i16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn overlaps(api: ApiKey, range: VersionRange) -> bool {
    match api {
        ApiKey::ApiVersions => range.contains(0) || range.contains(3),
        _ => highest_common(range, supported(api), None).is_some(),
    }
}

fn supported_text(api: ApiKey) -> &'static str {
    match api {
        ApiKey::Produce => "3-13",
        ApiKey::Metadata => "1-13",
        ApiKey::SaslHandshake => "0-1",
        ApiKey::ApiVersions => "0 and 3",
        ApiKey::InitProducerId => "0-5",
    }
}
