//! Choosing versions.

use kafka::error_code::ErrorCode;
use kafka::negotiation::{
    CapError, Negotiated, NegotiationError, ProduceVersion, VersionCaps, VersionRange,
    highest_common, supported,
};
use kafka::wire::ApiKey;
use kafka::wire::api_versions::{ApiRange, Response};

fn range(min: i16, max: i16) -> VersionRange {
    VersionRange::new(min, max)
}

fn broker(ranges: &[(ApiKey, i16, i16)]) -> Response {
    Response {
        error_code: ErrorCode::NONE,
        ranges: ranges
            .iter()
            .map(|(api, min, max)| ApiRange { api_key: api.code(), min: *min, max: *max })
            .collect(),
        throttle_time_ms: 0,
    }
}

fn caps(text: &str) -> VersionCaps {
    let mut caps = VersionCaps::default();
    for parameter in text.split_whitespace() {
        caps.parse_one(parameter).unwrap();
    }
    caps
}

#[test]
fn the_highest_version_that_both_speak() {
    assert_eq!(highest_common(range(0, 9), range(3, 11), None), Some(9));
    assert_eq!(highest_common(range(0, 13), range(3, 11), None), Some(11));
    assert_eq!(highest_common(range(0, 9), range(3, 11), Some(range(3, 8))), Some(8));
    assert_eq!(highest_common(range(0, 3), range(3, 11), None), Some(3));
}

#[test]
fn no_overlap_is_no_version() {
    assert_eq!(highest_common(range(0, 2), range(3, 11), None), None);
    assert_eq!(highest_common(range(12, 15), range(3, 11), None), None);
    assert_eq!(highest_common(range(0, 9), range(3, 11), Some(range(10, 11))), None);
    assert_eq!(highest_common(range(9, 0), range(3, 11), None), None, "the wrong way round");
}

#[test]
fn a_broker_of_4_0_advertises_produce_from_0_and_gets_the_highest() {
    let response = broker(&[(ApiKey::Produce, 0, 12), (ApiKey::Metadata, 0, 13)]);
    let negotiated = Negotiated::from_response(&response, &VersionCaps::default()).unwrap();
    assert_eq!(negotiated.produce().get(), 12);
    assert_eq!(negotiated.metadata().get(), 13);
    assert_eq!(negotiated.init_producer_id(), None);
    assert_eq!(negotiated.broker_range(ApiKey::Produce), Some(range(0, 12)));
    assert_eq!(negotiated.broker_range(ApiKey::InitProducerId), None);
}

#[test]
fn a_cap_lowers_the_choice() {
    let response = broker(&[
        (ApiKey::Produce, 0, 9),
        (ApiKey::Metadata, 0, 11),
        (ApiKey::InitProducerId, 0, 4),
    ]);
    let negotiated =
        Negotiated::from_response(&response, &caps("produce=3-8 METADATA=5 init_producer_id=0-1"))
            .unwrap();
    assert_eq!(negotiated.produce().get(), 8);
    assert_eq!(negotiated.metadata().get(), 5);
    assert_eq!(negotiated.init_producer_id().unwrap().get(), 1);
}

#[test]
fn a_cap_above_the_broker_is_an_error_that_names_it() {
    let response = broker(&[(ApiKey::Produce, 0, 9), (ApiKey::Metadata, 0, 11)]);
    let error = Negotiated::from_response(&response, &caps("produce=10-13")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no common version of Produce: the broker has 0-9, this client 3-13, api_versions allows \
         10-13"
    );
}

#[test]
fn a_broker_of_0_10_is_an_error_that_names_both_ranges() {
    let response = broker(&[(ApiKey::Produce, 0, 2), (ApiKey::Metadata, 0, 1)]);
    let error = Negotiated::from_response(&response, &VersionCaps::default()).unwrap_err();
    assert_eq!(
        error,
        NegotiationError::NoCommonVersion {
            api: ApiKey::Produce,
            broker: range(0, 2),
            ours: range(3, 13),
            cap: None
        }
    );
    assert_eq!(
        error.to_string(),
        "no common version of Produce: the broker has 0-2, this client 3-13"
    );
}

#[test]
fn what_is_not_offered_or_refused_is_an_error() {
    let caps = VersionCaps::default();
    let mut response = broker(&[(ApiKey::Metadata, 0, 13)]);
    let error = Negotiated::from_response(&response, &caps).unwrap_err();
    assert_eq!(error.to_string(), "the broker does not offer Produce");
    response.error_code = ErrorCode::UNSUPPORTED_VERSION;
    let error = Negotiated::from_response(&response, &caps).unwrap_err();
    assert_eq!(error.to_string(), "the broker refuses ApiVersions: UNSUPPORTED_VERSION (35)");
}

#[test]
fn what_a_produce_version_can_do() {
    let version = ProduceVersion::assume;
    assert!(!version(6).allows_zstd() && version(7).allows_zstd());
    assert!(!version(12).uses_topic_ids() && version(13).uses_topic_ids());
    assert_eq!(version(13).without_topic_ids().get(), 12);
    assert_eq!(version(5).without_topic_ids().get(), 5);
}

#[test]
fn the_directive_is_read() {
    let caps = caps("Produce=3-12 metadata=5 api_versions=0 sasl_handshake=0");
    assert_eq!(caps.get(ApiKey::Produce), Some(range(3, 12)));
    assert_eq!(caps.get(ApiKey::Metadata), Some(range(5, 5)));
    assert_eq!(caps.get(ApiKey::InitProducerId), None);
    assert_eq!(caps.first_api_versions_request(), 0);
    assert_eq!(VersionCaps::default().first_api_versions_request(), 3);
}

#[test]
fn faults_in_the_directive_are_named() {
    let mut caps = VersionCaps::default();
    for text in [
        "produce",
        "produce=",
        "produce=a",
        "produce=3-",
        "produce=-3",
        "produce=+3",
        "produce=3-4-5",
        "produce=3 -4",
        "produce=99999",
    ] {
        assert_eq!(caps.parse_one(text), Err(CapError::Syntax(text.to_owned())));
    }
    let error = caps.parse_one("fetch=3").unwrap_err().to_string();
    assert!(error.starts_with("unknown API \"fetch\", use one of \"produce\""), "{error}");
    let error = caps.parse_one("produce=5-4").unwrap_err().to_string();
    assert_eq!(error, "the versions \"5-4\" are the wrong way round");
    let error = caps.parse_one("produce=0-2").unwrap_err().to_string();
    assert_eq!(error, "\"produce=0-2\" allows no version that is supported: Produce has 3-13");
    let error = caps.parse_one("api_versions=1-2").unwrap_err().to_string();
    assert!(error.ends_with("ApiVersions has 0 and 3"), "{error}");
    assert_eq!(caps, VersionCaps::default());
    caps.parse_one("produce=5").unwrap();
    let error = caps.parse_one("Produce=6").unwrap_err().to_string();
    assert_eq!(error, "\"Produce\" is given twice");
    assert_eq!(caps.get(ApiKey::Produce), Some(range(5, 5)));
}

#[test]
fn the_versions_spoken_here() {
    let spoken = ApiKey::ALL.map(|api| (api.name(), supported(api).to_string()));
    let expected = [
        ("Produce", "3-13"),
        ("Metadata", "1-13"),
        ("SaslHandshake", "0-1"),
        ("ApiVersions", "0-3"),
        ("InitProducerId", "0-5"),
    ];
    assert_eq!(spoken, expected.map(|(api, range)| (api, range.to_owned())));
}
