//! Checks between the directives of one block, once all of them are known.

use kafka::{Acks, Idempotence, MILLISECOND, Micros};

use super::super::args::Invalid;
use super::super::position::Position;
use super::Block;

/// What an idempotent producer may have in flight per partition (KIP-98): brokers remember the
/// last five batches.
const MAX_IDEMPOTENT_IN_FLIGHT: usize = 5;

impl Block {
    /// Completes defaults that depend on others. An error names the faulty directive's place.
    pub(super) fn check(&mut self) -> Result<(), (Position, Invalid)> {
        self.bootstrap()?;
        self.idempotence()?;
        self.sizes()?;
        self.times()
    }

    /// What may be meant, but should be known.
    pub(super) fn warning(&self) -> Option<(Position, String)> {
        let config = &self.producer;
        let without = config.idempotence == Idempotence::Auto && config.acks != Acks::All;
        without.then(|| {
            let message = "with these \"acks\" records are produced without idempotence; \
                           write \"idempotence off;\" if that is meant, or \"acks all;\"";
            (self.first_of(&["acks"]), message.to_owned())
        })
    }

    /// The place of the first of these directives that is there.
    fn first_of(&self, names: &[&str]) -> Position {
        names.iter().find_map(|name| self.place(name)).unwrap_or(&self.position).clone()
    }

    fn bootstrap(&self) -> Result<(), (Position, Invalid)> {
        if self.place("bootstrap_servers").is_some() {
            return Ok(());
        }
        Err((
            self.position.clone(),
            format!(
                "kafka_cluster \"{}\" has no \"bootstrap_servers\" directive, \
                 add \"bootstrap_servers HOST:PORT;\"",
                self.name
            ),
        ))
    }

    fn idempotence(&self) -> Result<(), (Position, Invalid)> {
        let config = &self.producer;
        if config.idempotence == Idempotence::On && config.acks != Acks::All {
            return Err((
                self.first_of(&["idempotence"]),
                "\"idempotence on\" needs \"acks all\", \
                 write \"acks all;\", or \"idempotence off;\""
                    .into(),
            ));
        }
        let idempotent = config.idempotence != Idempotence::Off && config.acks == Acks::All;
        if idempotent && config.max_in_flight > MAX_IDEMPOTENT_IN_FLIGHT {
            return Err((
                self.first_of(&["max_in_flight"]),
                format!(
                    "\"max_in_flight {}\" is more than an idempotent producer may have, \
                     write at most \"max_in_flight 5;\", or add \"idempotence off;\"",
                    config.max_in_flight
                ),
            ));
        }
        Ok(())
    }

    fn sizes(&mut self) -> Result<(), (Position, Invalid)> {
        let config = &mut self.producer;
        if self.seen.iter().all(|(name, _)| *name != "max_message_size") {
            // Only what was written can be wrong.
            config.max_message_size = config.max_message_size.min(config.buffer_size);
        }
        let config = &self.producer;
        if config.max_message_size > config.buffer_size {
            return Err((
                self.first_of(&["max_message_size"]),
                format!(
                    "\"max_message_size\" ({} bytes) is larger than \"buffer_size\" ({} bytes), \
                     so that the largest messages would never fit; \
                     lower \"max_message_size\" or raise \"buffer_size\"",
                    config.max_message_size, config.buffer_size
                ),
            ));
        }
        Ok(())
    }

    fn times(&mut self) -> Result<(), (Position, Invalid)> {
        let delivery = self.producer.delivery_timeout;
        if self.place("request_timeout").is_none() {
            let half = (delivery / 2).max(MILLISECOND);
            self.producer.request_timeout = self.producer.request_timeout.min(half);
        } else if self.producer.request_timeout > delivery {
            return Err((
                self.first_of(&["request_timeout"]),
                format!(
                    "\"request_timeout\" ({}) is longer than \"delivery_timeout\" ({}), \
                     write a shorter one, best at most half of it",
                    milliseconds(self.producer.request_timeout),
                    milliseconds(delivery)
                ),
            ));
        }
        if self.producer.linger >= delivery {
            return Err((
                self.first_of(&["linger", "delivery_timeout"]),
                format!(
                    "\"linger\" ({}) leaves nothing of \"delivery_timeout\" ({}), \
                     write a shorter \"linger\" or a longer \"delivery_timeout\"",
                    milliseconds(self.producer.linger),
                    milliseconds(delivery)
                ),
            ));
        }
        Ok(())
    }
}

fn milliseconds(time: Micros) -> String {
    format!("{}ms", time / MILLISECOND)
}

#[cfg(test)]
mod tests {
    use kafka::{Config, SECOND};

    use super::super::directives::DIRECTIVES;
    use super::*;

    /// A block with one directive per line, the first on line 2.
    fn block(lines: &[&str]) -> Block {
        let place = |line| Position { file: "nginx.conf".into(), line };
        let mut block = Block {
            name: "main".into(),
            position: place(1),
            producer: Config::new(Vec::new()),
            seen: Vec::new(),
        };
        for (index, line) in lines.iter().enumerate() {
            let (name, value) = line.split_once(' ').unwrap();
            let directive = DIRECTIVES.iter().find(|directive| directive.name == name).unwrap();
            let values: Vec<_> = value.split(' ').collect();
            (directive.apply)(&mut block.producer, directive.name, &values).unwrap();
            block.seen.push((directive.name, place(index + 2)));
        }
        block
    }

    fn fault(lines: &[&str]) -> (usize, String) {
        let (position, message) = block(lines).check().unwrap_err();
        (position.line, message)
    }

    const SERVERS: &str = "bootstrap_servers kafka:9092";

    #[test]
    fn only_the_servers_are_required() {
        assert_eq!(block(&[SERVERS]).check(), Ok(()));
        let (line, message) = fault(&["acks all"]);
        assert_eq!(line, 1);
        assert!(message.contains("add \"bootstrap_servers HOST:PORT;\""), "{message}");
    }

    #[test]
    fn the_request_timeout_is_at_most_half_of_the_delivery_timeout_unless_set() {
        let request_timeout = |lines: &[&str]| {
            let mut block = block(lines);
            block.check().unwrap();
            block.producer.request_timeout
        };
        assert_eq!(request_timeout(&[SERVERS]), 10 * SECOND);
        assert_eq!(request_timeout(&[SERVERS, "delivery_timeout 60s"]), 10 * SECOND);
        assert_eq!(request_timeout(&[SERVERS, "delivery_timeout 4s"]), 2 * SECOND);
        assert_eq!(
            request_timeout(&[SERVERS, "request_timeout 4s", "delivery_timeout 4s"]),
            4 * SECOND
        );
        assert_eq!(fault(&[SERVERS, "request_timeout 5s", "delivery_timeout 4s"]).0, 3);
        assert_eq!(fault(&[SERVERS, "delivery_timeout 4s", "request_timeout 5s"]).0, 4);
    }

    #[test]
    fn idempotence_sets_limits() {
        assert_eq!(fault(&[SERVERS, "idempotence on", "acks 1"]).0, 3);
        assert_eq!(fault(&[SERVERS, "acks 0", "idempotence on"]).0, 4);
        assert_eq!(block(&[SERVERS, "acks 1"]).check(), Ok(()));
        assert_eq!(fault(&[SERVERS, "max_in_flight 6"]).0, 3);
        assert_eq!(block(&[SERVERS, "max_in_flight 6", "idempotence off"]).check(), Ok(()));
        assert_eq!(block(&[SERVERS, "max_in_flight 6", "acks 1"]).check(), Ok(()));
    }

    #[test]
    fn acks_that_cost_idempotence_are_warned_of_unless_that_is_said() {
        let line = |lines: &[&str]| block(lines).warning().map(|(position, _)| position.line);
        assert_eq!(line(&[SERVERS, "acks 1"]), Some(3));
        assert_eq!(line(&[SERVERS, "acks 0", "idempotence auto"]), Some(3));
        assert_eq!(line(&[SERVERS, "acks 1", "idempotence off"]), None);
        assert_eq!(line(&[SERVERS]), None);
    }

    #[test]
    fn a_message_must_fit_the_buffer_and_linger_the_deadline() {
        assert_eq!(fault(&[SERVERS, "max_message_size 2m", "buffer_size 1m"]).0, 3);
        assert_eq!(fault(&[SERVERS, "buffer_size 1m", "max_message_size 2m"]).0, 4);
        let mut small = block(&[SERVERS, "buffer_size 512k"]);
        assert_eq!(small.check(), Ok(()));
        assert_eq!(small.producer.max_message_size, 512 * 1024);
        assert_eq!(block(&[SERVERS, "buffer_size 1m"]).check(), Ok(()));
        assert_eq!(fault(&[SERVERS, "linger 30s"]).0, 3);
        assert_eq!(fault(&[SERVERS, "delivery_timeout 5ms"]).0, 3);
    }
}
