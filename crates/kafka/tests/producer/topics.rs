//! Topics: missing, new, many; partitions and keys.

use kafka::{AppendError, Delivery, FailureKind, MILLISECOND, SECOND};

use crate::cluster::Cluster;

#[test]
fn two_answers_make_a_topic_missing() {
    let mut cluster = Cluster::new(&[1], |_| {});
    cluster.send("nope", b"x", 1);
    assert!(cluster.completions.is_empty(), "one answer proves nothing");
    cluster.pass(SECOND);
    let completion = cluster.completion();
    let Delivery::NotWritten(failure) = completion.delivery else { panic!() };
    assert_eq!((failure.kind, completion.partition), (FailureKind::UnknownTopic, None));
    let asked: Vec<_> = cluster.metadata_requests.iter().map(|(at, _, _)| *at).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked[1] - asked[0] >= 100 * MILLISECOND);
}

#[test]
fn the_second_answer_comes_from_another_broker_where_there_is_one() {
    let mut cluster = Cluster::new(&[1, 2, 3], |_| {});
    cluster.send("nope", b"x", 1);
    cluster.pass(SECOND);
    assert!(matches!(cluster.completion().delivery, Delivery::NotWritten(_)));
    let nodes: Vec<_> = cluster.metadata_requests.iter().map(|(_, node, _)| *node).collect();
    assert_eq!(nodes.len(), 2);
    assert_ne!(nodes[0], nodes[1]);
}

#[test]
fn a_topic_that_one_broker_does_not_know_yet_is_found() {
    let mut cluster = Cluster::new(&[1, 2], |_| {}).topic("new", &[2]);
    cluster.hidden.insert(1, vec!["new".into()]);
    cluster.send("new", b"x", 1);
    cluster.pass(SECOND);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn a_missing_topic_is_refused_for_a_second_and_then_looked_up_again() {
    let mut cluster = Cluster::new(&[1], |_| {});
    cluster.send("t", b"x", 1);
    cluster.pass(200 * MILLISECOND);
    cluster.completion();
    let asked = cluster.metadata_requests.len();
    for token in 2..100 {
        assert_eq!(
            cluster.append("t", Some(0), b"x", token),
            Err(AppendError::UnknownTopic { index: 0 })
        );
        assert!(cluster.producer.topic_is_missing(cluster.now, "t"));
    }
    cluster.run();
    assert_eq!(cluster.metadata_requests.len(), asked, "no storm");
    let mut cluster = cluster.topic("t", &[1]);
    cluster.pass(SECOND);
    cluster.send("t", b"y", 200);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [200]);
    assert!(!cluster.producer.topic_is_missing(cluster.now, "t"));
}

#[test]
fn a_topic_that_was_known_is_waited_for() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1]);
    cluster.warm_up("t");
    let topic = cluster.topics.remove("t").unwrap();
    cluster.send("t", b"x", 1);
    for _ in 0..20 {
        while let Some(call) = cluster.calls.pop_front() {
            cluster.answer(&call, 3, -1);
        }
        cluster.pass(SECOND);
    }
    assert!(cluster.completions.is_empty());
    cluster.topics.insert("t".into(), topic);
    cluster.pass(2 * SECOND);
    while let Some(call) = cluster.calls.pop_front() {
        cluster.answer(&call, 0, 5);
    }
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn with_auto_creation_a_missing_topic_is_waited_for() {
    let mut cluster = Cluster::new(&[1], |c| c.auto_create_topics = true);
    cluster.send("t", b"x", 1);
    cluster.pass(5 * SECOND);
    assert!(cluster.completions.is_empty());
    let mut cluster = cluster.topic("t", &[1]);
    cluster.pass(2 * SECOND);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [1]);
}

#[test]
fn a_partition_that_does_not_exist_is_refused() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[1, 1]);
    cluster.append("t", Some(2), b"x", 1).unwrap();
    cluster.run();
    let Delivery::Rejected(failure) = cluster.completion().delivery else { panic!() };
    assert_eq!(failure.kind, FailureKind::UnknownPartition);
    assert_eq!(
        cluster.append("t", Some(2), b"x", 2),
        Err(AppendError::UnknownPartition { index: 0, partition: 2, count: 2 })
    );
    // The topic grows.
    cluster.topics.get_mut("t").unwrap().leaders = vec![1, 1, 1];
    cluster.pass(2 * SECOND);
    cluster.append("t", Some(2), b"x", 3).unwrap();
    cluster.run();
    let call = cluster.call();
    assert_eq!(call.batches[0].partition, 2);
}

#[test]
fn the_number_of_topics_is_bounded_and_missing_ones_make_room() {
    let mut cluster = Cluster::new(&[1], |c| c.max_topics = 3).topic("real", &[1]);
    cluster.send("real", b"on its way", 9);
    cluster.append("a", None, b"x", 1).unwrap();
    cluster.append("b", None, b"x", 2).unwrap();
    assert_eq!(cluster.append("c", None, b"x", 3), Err(AppendError::TooManyTopics));
    cluster.pass(2 * SECOND);
    assert_eq!(cluster.completions.len(), 2);
    assert_eq!(cluster.append("c", None, b"x", 4), Ok(()));
}

#[test]
fn one_append_with_more_topics_than_the_bound_is_refused() {
    let mut cluster = Cluster::new(&[1], |c| c.max_topics = 2).topic("t", &[1]);
    let record = |topic| kafka::Record {
        topic,
        partition: None,
        key: None,
        value: Some(b"x"),
        headers: &[],
        timestamp_ms: 0,
        token: 1,
    };
    let records = ["a", "b", "c"].map(record);
    assert_eq!(cluster.producer.append(cluster.now, &records), Err(AppendError::TooManyTopics));
    assert_eq!(cluster.producer.outstanding(), 0);
    cluster.send("t", b"x", 2);
    assert_eq!(cluster.calls.len(), 1);
}

/// A topic that comes back must not begin with sequence numbers that its log has seen.
#[test]
fn a_known_topic_makes_room_and_comes_back_under_another_epoch() {
    let mut cluster = Cluster::new(&[1], |c| c.max_topics = 1).topic("a", &[1]).topic("b", &[1]);
    let mut epochs = vec![];
    for (token, topic) in ["a", "b", "a"].into_iter().enumerate() {
        cluster.send(topic, b"x", token as u64);
        let call = cluster.call();
        let header = &call.batches[0].header;
        assert_eq!((header.producer_id, header.base_sequence), (4000, 0));
        epochs.push(header.producer_epoch);
        cluster.answer(&call, 0, 0);
    }
    assert_eq!(epochs, [0, 1, 2]);
    assert_eq!(cluster.completions.len(), 3);
}

#[test]
fn keyless_records_stay_together_and_avoid_partitions_without_leader() {
    let mut cluster = Cluster::new(&[1], |c| c.batch_size = 1000).topic("t", &[1, -1, 1, -1]);
    cluster.warm_up("t");
    let mut partitions = vec![];
    for token in 1..200 {
        cluster.append("t", None, &[1; 100], token).unwrap();
        cluster.run();
        while let Some(call) = cluster.calls.pop_front() {
            partitions.extend(call.batches.iter().map(|b| b.partition));
            cluster.answer(&call, 0, 0);
        }
    }
    assert!(partitions.iter().all(|p| [0, 2].contains(p)));
    assert!(partitions.contains(&0) && partitions.contains(&2));
    let switches = partitions.windows(2).filter(|w| w[0] != w[1]).count();
    assert!(switches < 25, "sticky for a batch's worth of bytes: {switches}");
}

#[test]
fn a_leader_without_an_address_is_asked_for_with_backoff() {
    let mut cluster = Cluster::new(&[1], |_| {}).topic("t", &[9]);
    cluster.send("t", b"x", 1);
    cluster.pass(10 * SECOND);
    let asked = cluster.metadata_requests.len();
    assert!((8..=20).contains(&asked), "{asked}");
    cluster.topics.get_mut("t").unwrap().leaders = vec![1];
    cluster.pass(2 * SECOND);
    let call = cluster.call();
    cluster.answer(&call, 0, 0);
    assert_eq!(cluster.completion().tokens, [1]);
}
