//! Batching, order, deadlines, limits.

use kafka::{AppendError, Delivery, FailureKind, MILLISECOND, SECOND};

use crate::cluster::{Cluster, KAFKA_0_11, KAFKA_2_8};

fn written(offset: i64) -> Delivery {
    Delivery::Written { base_offset: Some(offset), log_append_time_ms: None }
}

#[test]
fn a_record_is_written_and_its_offset_reported() {
    for offer in [KAFKA_0_11, KAFKA_2_8] {
        let mut cluster = Cluster::new(&[1], |_| {}).topic("events", &[1]);
        cluster.offer = offer;
        cluster.send("events", b"hello", 42);
        let call = cluster.call();
        assert_eq!(call.version, offer.produce);
        assert_eq!(call.batches[0].values, ["hello"]);
        assert!(cluster.completions.is_empty(), "nothing is sent before it is acknowledged");
        cluster.answer(&call, 0, 17);
        let completion = cluster.completion();
        assert_eq!((completion.tokens, completion.delivery), (vec![42], written(17)));
        assert_eq!((&*completion.topic, completion.partition), ("events", Some(0)));
        assert_eq!((cluster.producer.outstanding(), cluster.producer.memory_used()), (0, 0));
    }
}

#[test]
fn an_idle_connection_sends_at_once_and_a_busy_one_gathers() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"a", 1);
    assert_eq!(cluster.calls.len(), 1, "sent in the same turn");
    for token in 2..10 {
        cluster.send("t", b"b", token);
    }
    assert_eq!(cluster.calls.len(), 1, "gathered while a request is under way");
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    let gathered = cluster.call();
    assert_eq!(gathered.batches[0].header.count, 8);
    cluster.answer(&gathered, 0, 2);
    assert_eq!(cluster.completions.iter().map(|c| c.tokens.len()).sum::<usize>(), 9);
}

#[test]
fn linger_bounds_the_wait_on_a_busy_connection() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"a", 1);
    cluster.send("t", b"b", 2);
    cluster.pass(4 * MILLISECOND);
    assert_eq!(cluster.calls.len(), 1);
    cluster.pass(2 * MILLISECOND);
    assert_eq!(cluster.calls.len(), 2, "5 ms after the first record of the batch");
}

#[test]
fn partitions_of_a_broker_share_a_request_one_batch_each() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1, 1, 1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    for (partition, token) in [(0, 2), (1, 3), (2, 4), (1, 5)] {
        cluster.append("t", Some(partition), b"y", token).unwrap();
    }
    cluster.run();
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    let call = cluster.call();
    let mut seen: Vec<(i32, i32)> =
        call.batches.iter().map(|b| (b.partition, b.header.count)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(0, 1), (1, 2), (2, 1)]);
}

#[test]
fn a_never_sent_record_is_not_written_when_its_time_is_up() {
    let mut cluster = Cluster::new(&[1], |c| c.delivery_timeout = 3 * SECOND).topic("t", &[1]);
    cluster.refusing = vec![1];
    cluster.send("t", b"x", 1);
    cluster.pass(2_900 * MILLISECOND);
    assert!(cluster.completions.is_empty());
    cluster.pass(200 * MILLISECOND);
    let Delivery::NotWritten(failure) = cluster.completion().delivery else { panic!() };
    assert_eq!(failure.kind, FailureKind::DeliveryTimeout);
    assert!(failure.message.contains("connection refused"), "{}", failure.message);
    assert_eq!(cluster.producer.memory_used(), 0);
}

#[test]
fn a_sent_record_is_ambiguous_when_its_time_is_up() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.kill(1);
    assert_eq!(call.batches.len(), 1);
    cluster.pass(31 * SECOND);
    assert!(matches!(cluster.completion().delivery, Delivery::Ambiguous(_)));
    assert_eq!(cluster.producer.memory_used(), 0);
}

#[test]
fn a_record_whose_every_attempt_was_refused_is_not_written() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    for _ in 0..200 {
        while let Some(call) = cluster.calls.pop_front() {
            cluster.answer(&call, 19, -1);
        }
        cluster.pass(200 * MILLISECOND);
    }
    assert!(matches!(cluster.completion().delivery, Delivery::NotWritten(_)));
}

#[test]
fn an_unreachable_cluster_refuses_at_once_until_a_probe_succeeds() {
    let mut cluster = Cluster::new(&[1], |c| c.delivery_timeout = 2 * SECOND).topic("t", &[1]);
    cluster.refusing = vec![1];
    cluster.send("t", b"x", 1);
    cluster.pass(3 * SECOND);
    cluster.completion();
    assert!(matches!(
        cluster.append("t", None, b"y", 2),
        Err(AppendError::Unreachable(reason)) if reason.contains("connection refused")
    ));
    let attempts = cluster.connects.len();
    cluster.pass(60 * SECOND);
    let probes = cluster.connects.len() - attempts;
    assert!((4..=12).contains(&probes), "probes go on, with backoff: {probes}");
    cluster.refusing.clear();
    cluster.pass(13 * SECOND);
    cluster.send("t", b"z", 3);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [3]);
}

#[test]
fn a_full_buffer_refuses_and_recovers() {
    let mut cluster = Cluster::new(&[1], |c| c.buffer_size = 64 * 1024).topic("t", &[1]);
    cluster.warm_up("t");
    let mut taken = 0;
    while cluster.append("t", Some(0), &[7; 1000], taken + 1).is_ok() {
        taken += 1;
        assert!(taken < 100, "the buffer has a bound");
    }
    assert_eq!(cluster.append("t", Some(0), &[7; 1000], 500), Err(AppendError::Full));
    assert!(taken > 20, "{taken}");
    assert!(cluster.producer.memory_used() <= 64 * 1024 + 33 * 1024);
    cluster.run();
    while let Some(call) = cluster.calls.pop_front() {
        cluster.answer(&call, 0, 1);
    }
    assert_eq!(cluster.completions.iter().map(|c| c.tokens.len() as u64).sum::<u64>(), taken);
    assert_eq!(cluster.producer.memory_used(), 0);
    assert_eq!(cluster.append("t", Some(0), &[7; 1000], 501), Ok(()));
}

#[test]
fn several_records_are_taken_together_or_not_at_all() {
    let mut cluster = Cluster::new(&[1], |c| c.max_message_size = 1000).topic("t", &[1]);
    cluster.warm_up("t");
    let record = |value, token| kafka::Record {
        topic: "t",
        partition: Some(0),
        key: None,
        value: Some(value),
        headers: &[],
        timestamp_ms: 0,
        token,
    };
    let result = cluster
        .producer
        .append(cluster.now, &[record(&b"small"[..], 1), record(&[0; 2000][..], 2)]);
    assert!(matches!(result, Err(AppendError::TooLarge { index: 1, limit: 1000, .. })));
    cluster.run();
    assert!(cluster.calls.is_empty());
    assert_eq!(cluster.producer.outstanding(), 0);
}

#[test]
fn a_withdrawn_record_is_not_sent_and_the_others_are() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"on its way", 1);
    cluster.send("t", b"stays", 2);
    cluster.send("t", b"goes", 3);
    cluster.producer.cancel(cluster.now, 3);
    cluster.producer.cancel(cluster.now, 1);
    cluster.run();
    let cancelled = cluster.completion();
    assert_eq!(cancelled.tokens, [3]);
    let Delivery::NotWritten(failure) = cancelled.delivery else { panic!() };
    assert_eq!(failure.kind, FailureKind::Cancelled);
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    assert_eq!(cluster.completion().tokens, [1], "too late to withdraw");
    let call = cluster.call();
    assert_eq!(call.batches[0].values, ["stays"]);
    cluster.answer(&call, 0, 2);
    assert_eq!(cluster.completion().tokens, [2]);
}

#[test]
fn too_large_for_the_broker_is_cut_in_halves_until_single_records_fail() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"busy", 1);
    for token in 2..6 {
        cluster.send("t", &[token as u8; 100], token);
    }
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    cluster.completion();
    let whole = cluster.call();
    let first = whole.batches[0].header.base_sequence;
    assert_eq!(whole.batches[0].header.count, 4);
    cluster.answer(&whole, 10, -1);
    let left = cluster.call();
    assert_eq!((left.batches[0].header.count, left.batches[0].header.base_sequence), (2, first));
    cluster.answer(&left, 0, 2);
    let right = cluster.call();
    assert_eq!(right.batches[0].header.base_sequence, first + 2);
    cluster.answer(&right, 10, -1);
    let single = cluster.call();
    assert_eq!(single.batches[0].header.count, 1);
    cluster.answer(&single, 10, -1);
    let Delivery::Rejected(failure) = &cluster.completions[1].delivery else { panic!() };
    assert_eq!(failure.kind, FailureKind::Broker(kafka::error_code::ErrorCode::MESSAGE_TOO_LARGE));
    cluster.pass(SECOND);
    let last = cluster.call();
    assert_eq!(last.batches[0].values[0][0], 5);
    cluster.answer(&last, 0, 4);
    assert_eq!(cluster.completions.len(), 3);
    assert_eq!(cluster.producer.memory_used(), 0);
}

#[test]
fn a_bad_record_fails_alone() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"busy", 1);
    for token in 2..5 {
        cluster.send("t", b"x", token);
    }
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    cluster.completion();
    let call = cluster.call();
    cluster.answer_with(&call, |answer| {
        use kafka_protocol::messages::produce_response::BatchIndexAndErrorMessage;
        let error = BatchIndexAndErrorMessage::default()
            .with_batch_index(1)
            .with_batch_index_error_message(Some("no key on a compacted topic".into()));
        answer.with_error_code(87).with_base_offset(-1).with_record_errors(vec![error])
    });
    let rejected = cluster.completion();
    assert_eq!(rejected.tokens, [3]);
    let Delivery::Rejected(failure) = rejected.delivery else { panic!() };
    assert!(failure.message.contains("no key on a compacted topic"));
    let rest = cluster.call();
    assert_eq!(rest.batches[0].header.count, 2);
    cluster.answer(&rest, 0, 2);
    assert_eq!(cluster.completion().tokens, [2, 4]);
}

#[test]
fn closing_delivers_what_is_held_and_then_nothing_more_is_taken() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"a", 1);
    cluster.send("t", b"b", 2);
    cluster.producer.close(cluster.now, cluster.now + 30 * SECOND);
    cluster.run();
    assert_eq!(cluster.append("t", Some(0), b"c", 3), Err(AppendError::Closing));
    assert_eq!(cluster.calls.len(), 2, "no lingering at the end");
    while let Some(call) = cluster.calls.pop_front() {
        cluster.answer(&call, 0, 1);
    }
    assert_eq!(cluster.completions.len(), 2);
    assert_eq!(cluster.producer.next_timer(), None);
}

#[test]
fn giving_up_tells_the_sent_from_the_unsent() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"a", 1);
    cluster.send("t", b"b", 2);
    cluster.producer.abort(cluster.now);
    cluster.run();
    let of = |token| cluster.completions.iter().find(|c| c.tokens == [token]).unwrap();
    assert!(matches!(of(1).delivery, Delivery::Ambiguous(_)));
    assert!(matches!(of(2).delivery, Delivery::NotWritten(_)));
    assert_eq!((cluster.producer.outstanding(), cluster.producer.memory_used()), (0, 0));
}
