//! The producer without nginx: plain sockets around the sans-IO core.
//!
//! `cargo run -p kafka --example produce -- HOST:PORT TOPIC [COUNT]` writes numbered records and
//! prints what became of them.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kafka::{Config, ConnId, Delivery, HostPort, Input, Micros, Output, Producer, Record};

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(server), Some(topic)) = (args.next(), args.next()) else {
        eprintln!("usage: produce HOST:PORT TOPIC [COUNT]");
        std::process::exit(2);
    };
    let count: u64 = args.next().map_or(1, |n| n.parse().expect("COUNT is a number"));
    let (host, port) = server.rsplit_once(':').expect("HOST:PORT");
    let bootstrap = HostPort { host: host.into(), port: port.parse().expect("a port") };

    let start = Instant::now();
    let now = || start.elapsed().as_micros() as Micros;
    let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let mut producer = Producer::new(Config::new(vec![bootstrap]), wall_clock.as_nanos() as u64);

    for token in 0..count {
        let value = format!("record {token}");
        let record = Record {
            topic: &topic,
            partition: None,
            key: Some(value.as_bytes()),
            value: Some(value.as_bytes()),
            headers: &[(b"origin", Some(b"example"))],
            timestamp_ms: wall_clock.as_millis() as i64,
            token,
        };
        producer.append(now(), &[record]).expect("the buffer takes a few records");
    }

    let mut sockets: HashMap<ConnId, TcpStream> = HashMap::new();
    let (mut written, mut failed) = (0, 0);
    let mut buffer = vec![0; 65536];
    while ((written + failed) as u64) < count {
        while let Some(output) = producer.poll(now()) {
            match output {
                Output::Resolve { query, host, port } => {
                    let result = (&*host, port).to_socket_addrs().map(Iterator::collect);
                    let result = result.map_err(|error| error.to_string());
                    producer.handle(now(), Input::Resolved { query, result });
                }
                Output::Connect { conn, addr, .. } => match TcpStream::connect(addr) {
                    Ok(socket) => {
                        socket.set_nodelay(true).expect("a TCP socket");
                        sockets.insert(conn, socket);
                        producer.handle(now(), Input::Connected { conn });
                    }
                    Err(error) => {
                        let reason = error.to_string();
                        producer.handle(now(), Input::Closed { conn, reason });
                    }
                },
                Output::Transmit { conn } => {
                    let bytes: Vec<u8> =
                        producer.transmit(conn).flat_map(|segment| segment.to_vec()).collect();
                    let Some(socket) = sockets.get_mut(&conn) else { continue };
                    match socket.write_all(&bytes) {
                        Ok(()) => {
                            let bytes = bytes.len();
                            producer.handle(now(), Input::Transmitted { conn, bytes });
                        }
                        Err(error) => {
                            sockets.remove(&conn);
                            let reason = error.to_string();
                            producer.handle(now(), Input::Closed { conn, reason });
                        }
                    }
                }
                Output::Close { conn } => {
                    sockets.remove(&conn);
                }
                Output::Completed(completion) => match completion.delivery {
                    Delivery::Written { .. } => written += completion.tokens.len(),
                    delivery => {
                        failed += completion.tokens.len();
                        eprintln!("{delivery:?}");
                    }
                },
                Output::Event(event) => eprintln!("{:?}: {}", event.severity, event.message),
            }
        }
        let mut lost = Vec::new();
        for (conn, socket) in &mut sockets {
            socket.set_read_timeout(Some(Duration::from_millis(1))).expect("not zero");
            match socket.read(&mut buffer) {
                Ok(0) => lost.push((*conn, "closed by the broker".to_string())),
                Ok(n) => {
                    producer.handle(now(), Input::Received { conn: *conn, bytes: &buffer[..n] });
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => lost.push((*conn, error.to_string())),
            }
        }
        for (conn, reason) in lost {
            sockets.remove(&conn);
            producer.handle(now(), Input::Closed { conn, reason });
        }
        if producer.next_timer().is_some_and(|at| at <= now()) {
            producer.handle(now(), Input::Timer);
        }
    }
    println!("{written} written, {failed} failed, {} ms", start.elapsed().as_millis());
    std::process::exit(i32::from(failed > 0));
}
