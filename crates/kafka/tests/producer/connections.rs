//! Connections: timeouts, throttling, idle closes, strange peers.

use kafka::{Delivery, Input, MILLISECOND, SECOND, Severity};

use crate::cluster::{Cluster, Offer};

#[test]
fn connections_are_one_per_broker() {
    let mut cluster = Cluster::new(&[1, 2], |_| {}).topic("t", &[1, 2]);
    for token in 0..50 {
        cluster.append("t", Some((token % 2) as i32), b"x", token).unwrap();
        cluster.run();
        while let Some(call) = cluster.calls.pop_front() {
            cluster.answer(&call, 0, 0);
        }
    }
    assert_eq!(cluster.completions.len(), 50);
    // One to the bootstrap server, given up for those to the nodes.
    assert_eq!(cluster.connects.len(), 3);
}

#[test]
fn a_silent_broker_is_left_after_the_request_timeout_and_its_batch_sent_again() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.pass(9 * SECOND);
    assert!(cluster.calls.is_empty());
    cluster.pass(2 * SECOND);
    let again = cluster.call();
    assert_ne!(again.conn, call.conn);
    assert_eq!(again.batches[0].bytes, call.batches[0].bytes);
    cluster.answer(&again, 0, 1);
    assert_eq!(cluster.completion().tokens, [1]);
}

/// KIP-219: the answer comes at once, the next request must wait.
#[test]
fn a_throttled_connection_is_left_alone() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.throttle_ms = 3_000;
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    cluster.completion();
    cluster.send("t", b"y", 2);
    assert_eq!(cluster.producer.retry_after(cluster.now), 3 * SECOND);
    cluster.pass(2_900 * MILLISECOND);
    assert!(cluster.calls.is_empty());
    cluster.throttle_ms = 0;
    cluster.pass(200 * MILLISECOND);
    assert_eq!(cluster.calls.len(), 1);
    assert!(cluster.completions.is_empty(), "slowed down, not failed");
}

#[test]
fn an_idle_close_by_the_broker_is_no_fault() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.send("t", b"x", 1);
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    cluster.completion();
    cluster.cut(call.conn);
    cluster.send("t", b"y", 2);
    let again = cluster.call();
    cluster.answer(&again, 0, 2);
    assert_eq!(cluster.completion().tokens, [2]);
    assert!(cluster.events.iter().all(|event| event.severity == Severity::Info));
}

#[test]
fn an_idle_connection_is_closed_from_our_side() {
    let mut cluster = Cluster::new(&[1], |c| c.idle_timeout = 60 * SECOND).topic("t", &[1]);
    cluster.warm_up("t");
    let connects = cluster.connects.len();
    cluster.pass(59 * SECOND);
    assert!(cluster.has_connections());
    cluster.pass(2 * SECOND);
    assert!(!cluster.has_connections());
    cluster.send("t", b"x", 1);
    assert_eq!(cluster.connects.len(), connects + 1);
    let call = cluster.call();
    cluster.answer(&call, 0, 1);
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn no_common_version_is_an_error_that_names_both_ranges() {
    let mut cluster = Cluster::new(&[1], |c| c.delivery_timeout = 2 * SECOND).topic("t", &[1]);
    cluster.offer = Offer { produce: 2, metadata: 1, init_producer_id: None };
    cluster.send("t", b"x", 1);
    let event = cluster.events.iter().find(|e| e.severity == Severity::Error).expect("an error");
    for part in ["Produce", "0-2", "3-13", "127.0.0.1:9001"] {
        assert!(event.message.contains(part), "{part}: {}", event.message);
    }
    cluster.pass(3 * SECOND);
    assert!(matches!(cluster.completion().delivery, Delivery::NotWritten(_)));
}

#[test]
fn peers_that_are_no_brokers_are_named() {
    for (bytes, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP"),
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], "TLS"),
        (&b"\xff\xff\xff\xff...."[..], "negative"),
        (&b"\x7f\xff\xff\xff...."[..], "limit"),
        (&b"\x00\x00\x00\x04\x00\x00\x00\x63"[..], "instead of"),
    ] {
        let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
        cluster.silent = vec![1];
        cluster.send("t", b"x", 1);
        let conn = cluster.only_connection();
        cluster.producer.handle(cluster.now, Input::Received { conn, bytes });
        cluster.run();
        let event = cluster.events.iter().find(|e| e.kind == "connection").expect("an event");
        assert!(event.message.contains(expected), "{expected}: {}", event.message);
        cluster.silent.clear();
        cluster.pass(SECOND);
        let call = cluster.call();
        cluster.answer(&call, 0, 0);
        assert_eq!(cluster.completion().tokens, [1], "works once a broker is there");
    }
}

#[test]
fn a_dead_broker_does_not_keep_others_from_being_asked() {
    let mut cluster = Cluster::new(&[1, 2], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    cluster.kill(1);
    cluster.topics.get_mut("t").unwrap().leaders = vec![2];
    cluster.topics.get_mut("t").unwrap().epoch = 1;
    cluster.send("t", b"x", 1);
    cluster.pass(2 * SECOND);
    let call = cluster.call();
    assert_eq!(call.node, 2);
    cluster.answer(&call, 0, 1);
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn reconnects_back_off() {
    let mut cluster = Cluster::new(&[1], |c| c.delivery_timeout = 3_600 * SECOND).topic("t", &[1]);
    cluster.refusing = vec![1];
    cluster.send("t", b"x", 1);
    cluster.pass(60 * SECOND);
    let attempts = cluster.connects.len();
    assert!((8..=20).contains(&attempts), "{attempts}");
}
