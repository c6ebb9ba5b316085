//! Sequence numbers: nothing lost, nothing doubled, nothing reordered.

use kafka::error_code::ErrorCode;
use kafka::{Delivery, FailureKind, Idempotence, SECOND};

use crate::cluster::{Cluster, KAFKA_0_11, Offer};

/// Fills one request, then a second batch behind it, both unanswered.
fn two_in_flight(cluster: &mut Cluster) {
    cluster.warm_up("t");
    cluster.send("t", b"one", 1);
    cluster.send("t", b"two", 2);
    cluster.pass(6_000);
    assert_eq!(cluster.calls.len(), 2);
}

#[test]
fn sequences_count_records() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"a", 1);
    let call = cluster.call();
    let header = &call.batches[0].header;
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 0, 1));
    cluster.send("t", b"b", 2);
    cluster.send("t", b"c", 3);
    cluster.answer(&call, 0, 1);
    let call = cluster.call();
    assert_eq!((call.batches[0].header.base_sequence, call.batches[0].header.count), (2, 2));
}

/// KAFKA-14359: a log without state accepts any first sequence.
#[test]
fn the_first_batch_to_a_log_travels_alone() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.send("t", b"first", 1);
    cluster.send("t", b"second", 2);
    cluster.pass(SECOND);
    assert_eq!(cluster.calls.len(), 1);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.calls.len(), 1);
}

#[test]
fn at_most_five_batches_are_unacknowledged_and_one_on_0_11() {
    for (offer, window) in [(crate::cluster::KAFKA_3_9, 5), (KAFKA_0_11, 1)] {
        let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
        cluster.offer = offer;
        cluster.warm_up("t");
        for token in 1..20 {
            cluster.send("t", b"x", token);
            cluster.pass(6_000);
        }
        assert_eq!(cluster.calls.len(), window);
    }
}

#[test]
fn a_lost_connection_resends_the_same_bytes_in_order() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    two_in_flight(&mut cluster);
    let (first, second) = (cluster.call(), cluster.call());
    cluster.cut(first.conn);
    cluster.pass(SECOND);
    let again = cluster.call();
    assert_eq!(again.batches[0].bytes, first.batches[0].bytes);
    assert!(cluster.calls.is_empty(), "one at a time until the log has proved that it knows us");
    cluster.answer(&again, 0, 1);
    let again = cluster.call();
    assert_eq!(again.batches[0].bytes, second.batches[0].bytes);
    cluster.answer(&again, 0, 2);
    let tokens: Vec<_> = cluster.completions.iter().flat_map(|c| c.tokens.clone()).collect();
    assert_eq!(tokens, [1, 2]);
}

#[test]
fn a_refused_batch_is_not_overtaken() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    two_in_flight(&mut cluster);
    let (first, second) = (cluster.call(), cluster.call());
    cluster.answer(&first, 19, -1);
    cluster.pass(2 * SECOND);
    assert!(cluster.calls.is_empty(), "the second is still on its way");
    cluster.answer(&second, 45, -1);
    cluster.pass(2 * SECOND);
    let again = cluster.call();
    assert_eq!(again.batches[0].bytes, first.batches[0].bytes);
    cluster.answer(&again, 0, 1);
    let again = cluster.call();
    assert_eq!(again.batches[0].bytes, second.batches[0].bytes);
}

/// franz-go#1217: a later "not written" says nothing about an earlier attempt.
#[test]
fn possibly_written_stays_possibly_written() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.answer(&call, 7, -1);
    for _ in 0..100 {
        cluster.pass(SECOND / 2);
        while let Some(call) = cluster.calls.pop_front() {
            assert_eq!(call.batches[0].header.base_sequence, 1, "never renumbered");
            cluster.answer(&call, 19, -1);
        }
    }
    assert!(matches!(cluster.completion().delivery, Delivery::Ambiguous(_)));
}

#[test]
fn a_log_that_lost_its_state_is_written_under_a_new_epoch() {
    for code in [45, 47, 59] {
        let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
        cluster.warm_up("t");
        cluster.send("t", b"x", 1);
        let call = cluster.call();
        cluster.answer(&call, code, -1);
        cluster.pass(SECOND);
        let again = cluster.call();
        let header = &again.batches[0].header;
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 1, 0));
        cluster.answer(&again, 0, 1);
        assert_eq!(cluster.completion().tokens, [1]);
        assert_eq!(cluster.pid_requests, 1, "no new producer id is asked for");
    }
}

#[test]
fn a_possibly_written_batch_never_goes_under_another_epoch() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.cut(call.conn);
    cluster.pass(SECOND);
    let again = cluster.call();
    cluster.answer(&again, 45, -1);
    assert!(matches!(cluster.completion().delivery, Delivery::Ambiguous(_)));
    cluster.send("t", b"y", 2);
    cluster.pass(SECOND);
    let next = cluster.call();
    assert_eq!(next.batches[0].values, ["y"]);
    assert_eq!(
        (next.batches[0].header.producer_epoch, next.batches[0].header.base_sequence),
        (1, 0)
    );
}

#[test]
fn a_batch_behind_an_expired_one_finds_out_whether_that_one_was_written() {
    for (code, epoch) in [(0, 0), (45, 1)] {
        let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
        cluster.warm_up("t");
        cluster.send("t", b"x", 1);
        cluster.call();
        cluster.silent = vec![1];
        cluster.pass(31 * SECOND);
        assert!(matches!(cluster.completion().delivery, Delivery::Ambiguous(_)));
        cluster.silent.clear();
        cluster.pass(45 * SECOND);
        cluster.send("t", b"y", 2);
        cluster.pass(SECOND);
        let next = cluster.call();
        assert_eq!(next.batches[0].header.base_sequence, 2, "behind the one of unknown fate");
        cluster.answer(&next, code, 2);
        if code != 0 {
            cluster.pass(SECOND);
            let next = cluster.call();
            assert_eq!(next.batches[0].header.producer_epoch, epoch);
            cluster.answer(&next, 0, 2);
        }
        assert_eq!(cluster.completion().tokens, [2]);
    }
}

#[test]
fn a_refused_and_dropped_batch_leaves_no_gap() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    two_in_flight(&mut cluster);
    let (first, second) = (cluster.call(), cluster.call());
    cluster.answer(&first, 44, -1);
    assert!(matches!(cluster.completion().delivery, Delivery::Rejected(_)));
    cluster.answer(&second, 45, -1);
    cluster.pass(SECOND);
    let again = cluster.call();
    let header = &again.batches[0].header;
    assert_eq!((header.producer_epoch, header.base_sequence), (1, 0));
    assert_eq!(again.batches[0].values, ["two"]);
}

#[test]
fn a_leader_move_with_a_hint_goes_to_the_new_leader_at_once() {
    let mut cluster = Cluster::new(&[1, 2], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    assert_eq!(call.node, 1);
    cluster.topics.get_mut("t").unwrap().leaders = vec![2];
    cluster.topics.get_mut("t").unwrap().epoch = 1;
    cluster.answer_moved(&call, 2, 1);
    cluster.run();
    let again = cluster.call();
    assert_eq!((again.node, &again.batches[0].bytes), (2, &call.batches[0].bytes));
}

#[test]
fn a_leader_move_without_a_hint_waits_for_metadata_only() {
    let mut cluster = Cluster::new(&[1, 2], |_| {}).topic("t", &[1]);
    cluster.offer = crate::cluster::KAFKA_2_8;
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.topics.get_mut("t").unwrap().leaders = vec![2];
    cluster.topics.get_mut("t").unwrap().epoch = 1;
    cluster.answer(&call, 6, -1);
    cluster.pass(150_000);
    let again = cluster.call();
    assert_eq!((again.node, &again.batches[0].bytes), (2, &call.batches[0].bytes));
}

#[test]
fn without_producer_ids_auto_goes_on_and_on_fails() {
    let offer = Offer { init_producer_id: None, ..crate::cluster::KAFKA_3_9 };
    for (idempotence, delivered) in [(Idempotence::Auto, true), (Idempotence::On, false)] {
        let mut cluster = Cluster::new(&[1], |c| c.idempotence = idempotence).topic("t", &[1]);
        cluster.offer = offer;
        cluster.send("t", b"x", 1);
        assert!(cluster.events.iter().any(|event| event.kind == "idempotence"));
        if delivered {
            let call = cluster.call();
            assert_eq!(call.batches[0].header.producer_id, -1);
            cluster.answer(&call, 0, 0);
        }
        match (cluster.completion().delivery, delivered) {
            (Delivery::Written { .. }, true) => {}
            (Delivery::NotWritten(failure), false) => {
                assert_eq!(failure.kind, FailureKind::Unsupported);
            }
            (delivery, _) => panic!("{delivery:?}"),
        }
    }
}

#[test]
fn a_cluster_that_forbids_idempotent_writes_is_written_plainly() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.answer(&call, ErrorCode::CLUSTER_AUTHORIZATION_FAILED.0, -1);
    cluster.pass(SECOND);
    let again = cluster.call();
    assert_eq!(again.batches[0].header.producer_id, -1);
    cluster.answer(&again, 0, 1);
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn producer_ids_are_asked_for_again_with_backoff() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.pid_error = 14;
    cluster.send("t", b"x", 1);
    cluster.pass(5 * SECOND);
    assert!((5..=12).contains(&cluster.pid_requests), "{}", cluster.pid_requests);
    cluster.pid_error = 0;
    cluster.pass(2 * SECOND);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [1]);
}
