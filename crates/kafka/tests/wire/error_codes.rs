//! Names and meanings of the error codes.

use kafka::error_code::{ErrorCode, MetadataTopicClass, ProduceAction};

use crate::vectors::{self, entries, int};

#[test]
fn every_code_has_its_name() {
    let entries = entries(vectors::ERROR_CODES);
    for entry in &entries {
        let code = ErrorCode(int(&entry["code"]) as i16);
        assert_eq!(code.name(), entry["name"].as_str());
    }
    let known: Vec<i64> = ErrorCode::ALL.iter().map(|code| code.0.into()).collect();
    let expected: Vec<i64> = entries.iter().map(|entry| int(&entry["code"])).collect();
    assert_eq!(known, expected);
    assert_eq!(known.len(), 135);
}

#[test]
fn codes_show_name_and_number() {
    assert_eq!(ErrorCode(6).to_string(), "NOT_LEADER_OR_FOLLOWER (6)");
    assert_eq!(ErrorCode(-1).to_string(), "UNKNOWN_SERVER_ERROR (-1)");
    assert_eq!(ErrorCode(999).to_string(), "unknown error (999)");
    assert_eq!(ErrorCode(999).name(), None);
    assert!(ErrorCode(0).is_ok() && !ErrorCode(-1).is_ok());
}

/// Code, action, maybe persisted, refresh metadata.
#[test]
fn the_table_of_produce_errors() {
    use ProduceAction::*;
    let table = [
        (0, Done, true, false),
        (-1, RetryLimited(2), true, false),
        (2, RetryLimited(1), false, false),
        (3, Retry, false, true),
        (5, Retry, false, true),
        (6, Retry, false, true),
        (7, Retry, true, false),
        (8, Retry, false, true),
        (9, Retry, false, true),
        (10, Split, false, false),
        (13, Retry, true, true),
        (17, Reject, false, false),
        (18, Split, false, false),
        (19, Retry, false, false),
        (20, Retry, true, false),
        (21, Reject, false, false),
        (29, Reject, false, false),
        (31, DisableIdempotence, false, false),
        (32, RejectRecords, false, false),
        (35, Reconnect, false, false),
        (42, Reject, false, false),
        (43, NoIdempotenceForTopic, false, false),
        (44, Reject, false, false),
        (45, OutOfOrderSequence, false, false),
        (46, DoneWithoutOffset, true, false),
        (47, InvalidProducerEpoch, false, false),
        (48, Reject, false, false),
        (49, Reject, false, false),
        (51, Reject, false, false),
        (53, Reject, false, false),
        (56, Retry, true, true),
        (59, UnknownProducerId, false, false),
        (72, Retry, false, true),
        (74, Retry, false, true),
        (75, Retry, false, false),
        (76, Recompress, false, false),
        (87, RejectRecords, false, false),
        (89, Retry, false, false),
        (90, Reject, false, false),
        (100, Retry, false, true),
        (103, Retry, false, true),
        (120, Reject, false, false),
    ];
    for code in i16::MIN..=i16::MAX {
        let class = ErrorCode(code).produce_class();
        let row = table.iter().find(|row| row.0 == code);
        let (_, action, maybe_persisted, refresh) = row.unwrap_or(&(0, Unknown, true, false));
        assert_eq!(class.action, *action, "{code}");
        assert_eq!(class.maybe_persisted, *maybe_persisted, "{code}");
        assert_eq!(class.refresh_metadata, *refresh, "{code}");
    }
}

/// Where Java retries a code that Produce can answer, so does this crate.
#[test]
fn what_java_retries_is_retried() {
    let produce = [2, 3, 5, 6, 7, 9, 13, 19, 20, 56, 72, 74, 75, 100, 103];
    for entry in entries(vectors::ERROR_CODES) {
        let code = int(&entry["code"]) as i16;
        if entry["retriable"] != true || !produce.contains(&code) {
            continue;
        }
        let class = ErrorCode(code).produce_class();
        let retried = matches!(class.action, ProduceAction::Retry | ProduceAction::RetryLimited(_));
        assert!(retried, "{}", ErrorCode(code));
        if entry["invalid_metadata"] == true && code != 75 {
            assert!(class.refresh_metadata, "{}", ErrorCode(code));
        }
    }
}

#[test]
fn the_codes_of_topics_in_metadata() {
    let class = |code| ErrorCode(code).metadata_topic_class();
    assert_eq!(class(0), MetadataTopicClass::Ok);
    assert_eq!(class(3), MetadataTopicClass::Unknown);
    assert_eq!(class(17), MetadataTopicClass::Refused);
    assert_eq!(class(29), MetadataTopicClass::Refused);
    for code in [5, 9, -1, 7, 999] {
        assert_eq!(class(code), MetadataTopicClass::Retry);
    }
}
