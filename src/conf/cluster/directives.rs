//! Every directive of the block: how it is written, and where its value goes.

use core::ops::RangeInclusive;

use kafka::{Acks, Backoff, Config, Idempotence, Partitioner};

use super::super::args::{Invalid, choice, flag, invalid, number, positive_time, size, time};
use super::bootstrap;

/// A frame's length is an `i32`; this leaves room for everything around the records.
const MAX_REQUEST: usize = 1 << 30;
const MAX_BUFFER: usize = isize::MAX as usize;

pub(super) struct Directive {
    pub name: &'static str,
    /// The arguments, for people.
    pub usage: &'static str,
    pub arguments: RangeInclusive<usize>,
    pub apply: fn(&mut Config, &'static str, &[&str]) -> Result<(), Invalid>,
}

const fn one(
    name: &'static str,
    usage: &'static str,
    apply: fn(&mut Config, &'static str, &[&str]) -> Result<(), Invalid>,
) -> Directive {
    Directive { name, usage, arguments: 1..=1, apply }
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive {
        name: "bootstrap_servers",
        usage: "HOST:PORT …",
        arguments: 1..=usize::MAX,
        apply: |config, _, values| {
            config.bootstrap = bootstrap::parse(values)?;
            Ok(())
        },
    },
    one("client_id", "STRING", |config, name, values| {
        config.client_id = client_id(name, values[0])?;
        Ok(())
    }),
    one("acks", "all | 1 | 0", |config, name, values| {
        let choices = [("all", Acks::All), ("1", Acks::Leader), ("0", Acks::None)];
        config.acks = choice(name, values[0], &choices)?;
        Ok(())
    }),
    one("idempotence", "auto | on | off", |config, name, values| {
        let choices =
            [("auto", Idempotence::Auto), ("on", Idempotence::On), ("off", Idempotence::Off)];
        config.idempotence = choice(name, values[0], &choices)?;
        Ok(())
    }),
    one("linger", "TIME", |config, name, values| {
        config.linger = time(name, values[0])?;
        Ok(())
    }),
    one("batch_size", "SIZE", |config, name, values| {
        config.batch_size = size(name, values[0], MAX_REQUEST)?;
        Ok(())
    }),
    one("max_in_flight", "NUMBER", |config, name, values| {
        config.max_in_flight = number(name, values[0], 1, 1000)?;
        Ok(())
    }),
    one("max_message_size", "SIZE", |config, name, values| {
        config.max_message_size = size(name, values[0], MAX_REQUEST)?;
        Ok(())
    }),
    one("max_request_size", "SIZE", |config, name, values| {
        config.max_request_size = size(name, values[0], MAX_REQUEST)?;
        Ok(())
    }),
    one("buffer_size", "SIZE", |config, name, values| {
        config.buffer_size = size(name, values[0], MAX_BUFFER)?;
        Ok(())
    }),
    one("delivery_timeout", "TIME", |config, name, values| {
        config.delivery_timeout = positive_time(name, values[0])?;
        Ok(())
    }),
    one("request_timeout", "TIME", |config, name, values| {
        config.request_timeout = positive_time(name, values[0])?;
        Ok(())
    }),
    one("connect_timeout", "TIME", |config, name, values| {
        config.connect_timeout = positive_time(name, values[0])?;
        Ok(())
    }),
    Directive {
        name: "retry_backoff",
        usage: "MIN MAX",
        arguments: 2..=2,
        apply: |config, name, values| {
            config.retry_backoff = backoff(name, values)?;
            Ok(())
        },
    },
    Directive {
        name: "reconnect_backoff",
        usage: "MIN MAX",
        arguments: 2..=2,
        apply: |config, name, values| {
            config.reconnect_backoff = backoff(name, values)?;
            Ok(())
        },
    },
    one("idle_timeout", "TIME", |config, name, values| {
        config.idle_timeout = positive_time(name, values[0])?;
        Ok(())
    }),
    one("metadata_max_age", "TIME", |config, name, values| {
        config.metadata_max_age = positive_time(name, values[0])?;
        Ok(())
    }),
    one("partitioner", "murmur2 | crc32 | random", |config, name, values| {
        let choices = [
            ("murmur2", Partitioner::Murmur2),
            ("crc32", Partitioner::Crc32),
            ("random", Partitioner::Random),
        ];
        config.partitioner = choice(name, values[0], &choices)?;
        Ok(())
    }),
    one("auto_create_topics", "on | off", |config, name, values| {
        config.auto_create_topics = flag(name, values[0])?;
        Ok(())
    }),
    one("max_topics", "NUMBER", |config, name, values| {
        config.max_topics = number(name, values[0], 1, 1_000_000)?;
        Ok(())
    }),
    Directive {
        name: "api_versions",
        usage: "API=MIN-MAX …",
        arguments: 1..=usize::MAX,
        apply: |config, name, values| {
            values.iter().try_for_each(|value| {
                config
                    .api_versions
                    .parse_one(value)
                    .map_err(|error| format!("invalid parameter in \"{name}\" directive: {error}"))
            })
        },
    },
];

fn client_id(name: &str, value: &str) -> Result<String, Invalid> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // The protocol's strings have an `i16` length; nobody needs half of that.
    if value.is_empty() || value.len() > 255 || !value.bytes().all(allowed) {
        return Err(invalid(
            name,
            value,
            "1 to 255 of the characters A-Z, a-z, 0-9, \".\", \"_\" and \"-\"",
        ));
    }
    Ok(value.to_owned())
}

fn backoff(name: &str, values: &[&str]) -> Result<Backoff, Invalid> {
    let (min, max) = (positive_time(name, values[0])?, positive_time(name, values[1])?);
    if min > max {
        return Err(format!(
            "the MIN \"{}\" of the \"{name}\" directive is longer than its MAX \"{}\", \
             write the shorter time first",
            values[0], values[1]
        ));
    }
    Ok(Backoff { min, max })
}
