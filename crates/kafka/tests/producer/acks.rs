//! Producing with fewer guarantees.

use kafka::{Acks, Delivery, SECOND};

use crate::cluster::Cluster;

#[test]
fn acks_0_is_done_when_the_bytes_have_left() {
    let mut cluster = Cluster::new(&[1], |c| c.acks = Acks::None).topic("t", &[1]);
    cluster.send("t", b"x", 1);
    assert_eq!(
        cluster.completion().delivery,
        Delivery::Written { base_offset: None, log_append_time_ms: None }
    );
    assert_eq!(cluster.pid_requests, 0);
}

/// Without sequence numbers a second copy would be a second record.
#[test]
fn acks_1_never_resends_what_may_have_been_written() {
    let mut cluster = Cluster::new(&[1], |c| c.acks = Acks::Leader).topic("t", &[1]);
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    assert_eq!(call.batches[0].header.producer_id, -1);
    cluster.cut(call.conn);
    assert!(matches!(cluster.completion().delivery, Delivery::Ambiguous(_)));
    cluster.pass(5 * SECOND);
    assert!(cluster.calls.is_empty());
}

#[test]
fn acks_1_resends_what_was_refused_and_keeps_the_order() {
    let mut cluster = Cluster::new(&[1], |c| c.acks = Acks::Leader).topic("t", &[1]);
    cluster.send("t", b"a", 1);
    cluster.send("t", b"b", 2);
    cluster.pass(SECOND);
    let call = cluster.call();
    assert!(cluster.calls.is_empty(), "one at a time");
    cluster.answer(&call, 6, -1);
    cluster.pass(SECOND);
    let again = cluster.call();
    assert_eq!(again.batches[0].values, ["a"]);
    cluster.answer(&again, 0, 0);
    assert_eq!(cluster.call().batches[0].values, ["b"]);
}

#[test]
fn acks_0_does_not_wait_for_the_answers_to_other_requests() {
    let mut cluster = Cluster::new(&[1], |c| {
        c.acks = Acks::None;
        c.metadata_max_age = 20 * SECOND;
    })
    .topic("t", &[1]);
    cluster.send("t", b"x", 1);
    cluster.completion();
    cluster.silent = vec![1];
    cluster.pass(21 * SECOND);
    cluster.send("t", b"y", 2);
    assert_eq!(cluster.completion().tokens, [2]);
}
