//! Topic names, and the comma-separated list that `kafka_topic` yields.

use crate::shown::Shown;

/// Kafka's limit: a name, a partition number and separators must fit a file name of 255 bytes.
pub const MAX_LENGTH: usize = 249;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error("no topic is given")]
    Missing,
    #[error("the topic name {0} is longer than {MAX_LENGTH} characters")]
    TooLong(String),
    #[error("the topic name {0} may hold only letters, digits, \".\", \"_\" and \"-\"")]
    Characters(String),
    #[error("the topic name {0} is not allowed")]
    Dots(String),
}

/// Splits at commas. Names are trimmed, empty ones dropped, repeats kept once at their first place.
pub fn parse_list(text: &[u8]) -> Result<Vec<&str>, TopicError> {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if name.is_empty() {
            continue;
        }
        let name = check_name(name)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { Err(TopicError::Missing) } else { Ok(names) }
}

/// One name by the rules of `org.apache.kafka.common.internals.Topic`.
pub fn check_name(name: &[u8]) -> Result<&str, TopicError> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let shown = || Shown(name).to_string();
    if name.is_empty() {
        return Err(TopicError::Missing);
    }
    if !name.iter().all(allowed) {
        return Err(TopicError::Characters(shown()));
    }
    if name.len() > MAX_LENGTH {
        return Err(TopicError::TooLong(shown()));
    }
    if name == b"." || name == b".." {
        return Err(TopicError::Dots(shown()));
    }
    str::from_utf8(name).map_err(|_| TopicError::Characters(shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_trimmed_and_repeats_are_sent_once() {
        assert_eq!(parse_list(b"orders"), Ok(vec!["orders"]));
        assert_eq!(parse_list(b" a , b,,a ,\tc,"), Ok(vec!["a", "b", "c"]));
        assert_eq!(parse_list(b"A.b_c-9,a.b_c-9"), Ok(vec!["A.b_c-9", "a.b_c-9"]));
    }

    #[test]
    fn nothing_left_is_an_error() {
        for nothing in [&b""[..], b" ", b",", b" , \t,"] {
            assert_eq!(parse_list(nothing), Err(TopicError::Missing));
        }
        assert_eq!(check_name(b""), Err(TopicError::Missing));
    }

    #[test]
    fn one_bad_name_spoils_the_list() {
        for (text, message) in [
            (
                &b"a,b c"[..],
                "the topic name \"b c\" may hold only letters, digits, \".\", \"_\" and \"-\"",
            ),
            (
                b"\xff",
                "the topic name \"\u{fffd}\" may hold only letters, digits, \".\", \"_\" and \"-\"",
            ),
            (b"..", "the topic name \"..\" is not allowed"),
            (b".", "the topic name \".\" is not allowed"),
        ] {
            assert_eq!(parse_list(text).unwrap_err().to_string(), message);
        }
        for bad in ["a/b", "a\0", "ä", "a:b", "a\"b"] {
            assert!(parse_list(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(parse_list(b"..."), Ok(vec!["..."]));
    }

    #[test]
    fn names_end_at_249_characters() {
        let longest = "x".repeat(249);
        assert_eq!(parse_list(longest.as_bytes()), Ok(vec![longest.as_str()]));
        let error = parse_list("x".repeat(250).as_bytes()).unwrap_err().to_string();
        let shown = "x".repeat(80);
        assert_eq!(error, format!("the topic name \"{shown}…\" is longer than 249 characters"));
    }
}
