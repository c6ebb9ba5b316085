//! `bootstrap_servers HOST:PORT …`: pure syntax. Names are looked up at run time, never here.

use std::net::{Ipv4Addr, Ipv6Addr};

use kafka::HostPort;

use super::super::args::Invalid;

/// Takes several arguments, and a comma-separated list as other Kafka clients do, in any mixture.
pub(super) fn parse(values: &[&str]) -> Result<Vec<HostPort>, Invalid> {
    let mut servers: Vec<HostPort> = Vec::new();
    for text in values.iter().flat_map(|value| value.split(',')) {
        let server = one(text.trim()).map_err(|reason| {
            format!("invalid server \"{text}\" in \"bootstrap_servers\" directive: {reason}")
        })?;
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    Ok(servers)
}

const EXAMPLE: &str = "write it as \"HOST:PORT\", such as \"broker1:9092\"";

fn one(text: &str) -> Result<HostPort, String> {
    if text.is_empty() {
        return Err(format!("it is empty; {EXAMPLE}"));
    }
    if text.contains("://") {
        return Err(format!("a scheme does not belong here; {EXAMPLE}"));
    }
    if text.contains('$') {
        return Err(format!("variables are not possible here; {EXAMPLE}"));
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest
            .split_once(']')
            .ok_or("the \"]\" is missing; write it as \"[2001:db8::1]:9092\"")?;
        let address: Ipv6Addr = host.parse().map_err(|_| {
            format!("\"{host}\" is not an IPv6 address; write it as \"[2001:db8::1]:9092\"")
        })?;
        (address.to_string(), port.strip_prefix(':'))
    } else if text.matches(':').count() > 1 {
        return Err("an IPv6 address stands in brackets; write it as \"[2001:db8::1]:9092\"".into());
    } else {
        match text.split_once(':') {
            Some((host, port)) => (name(host)?, Some(port)),
            None => (name(text)?, None),
        }
    };
    let port = port.ok_or_else(|| format!("the port is missing; {EXAMPLE}"))?;
    Ok(HostPort { host: host.into(), port: number(port)? })
}

fn number(port: &str) -> Result<u16, String> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| port.parse().ok())
        .flatten()
        .filter(|port| *port != 0)
        .ok_or_else(|| format!("the port \"{port}\" is not a number from 1 to 65535; {EXAMPLE}"))
}

/// A host name, or an IPv4 address: as the last label of a name is never numeric, what looks like
/// an address must be one.
fn name(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Err(format!("the host is missing; {EXAMPLE}"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let labels = || host.strip_suffix('.').unwrap_or(host).split('.');
    let length = |label: &str| (1..=63).contains(&label.len());
    if host.len() > 253 || !host.bytes().all(allowed) || !labels().all(length) {
        return Err(format!("\"{host}\" is neither a host name nor an address; {EXAMPLE}"));
    }
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    if labels().next_back().is_some_and(numeric) && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!("\"{host}\" is not an IPv4 address; {EXAMPLE}"));
    }
    Ok(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> Vec<(String, u16)> {
        let servers = parse(values).unwrap();
        servers.into_iter().map(|server| (server.host.to_string(), server.port)).collect()
    }

    #[test]
    fn names_and_addresses_in_arguments_and_lists() {
        assert_eq!(
            shown(&["kafka-1.example.com:9092", "10.0.0.1:1, [::1]:65535", "b_2:9093"]),
            [
                ("kafka-1.example.com".to_owned(), 9092),
                ("10.0.0.1".to_owned(), 1),
                ("::1".to_owned(), 65535),
                ("b_2".to_owned(), 9093),
            ]
        );
        assert_eq!(shown(&["a:9092", "a:9092"]).len(), 1);
    }

    #[test]
    fn each_refusal_says_what_to_write() {
        for (text, reason) in [
            ("", "empty"),
            ("a:9092,,b:9092", "empty"),
            ("kafka", "port is missing"),
            ("kafka:", "\"\" is not a number from 1 to 65535"),
            ("kafka:0", "\"0\" is not a number from 1 to 65535"),
            ("kafka:65536", "from 1 to 65535"),
            ("kafka:+1", "from 1 to 65535"),
            ("kafka:http", "from 1 to 65535"),
            (":9092", "host is missing"),
            ("http://kafka:9092", "scheme"),
            ("$kafka:9092", "variables"),
            ("::1:9092", "brackets"),
            ("[::1]", "port is missing"),
            ("[::1]9092", "port is missing"),
            ("[::1:9092", "\"]\" is missing"),
            ("[::g]:9092", "not an IPv6 address"),
            ("10.0.0.256:9092", "not an IPv4 address"),
            ("a b:9092", "neither a host name nor an address"),
            ("a..b:9092", "neither a host name nor an address"),
        ] {
            let error = parse(&[text]).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("in \"bootstrap_servers\" directive"), "{error}");
        }
    }
}
