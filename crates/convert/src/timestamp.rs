//! The record timestamp that `kafka_timestamp` yields.

use crate::shown::Shown;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error(
        "the timestamp {0} is neither whole milliseconds, such as \"1700000000123\", nor seconds \
         with a decimal point, such as \"1700000000.123\""
    )]
    Syntax(String),
    #[error("the timestamp {0} is before 1970")]
    Negative(String),
    #[error("the timestamp {0} is too far in the future")]
    TooLarge(String),
}

/// Milliseconds since the Unix epoch; empty is `None`: now.
///
/// A whole number counts milliseconds, one with a decimal point counts seconds as nginx's `$msec`
/// does. Digits below the millisecond are cut off.
pub fn parse(text: &[u8]) -> Result<Option<i64>, TimestampError> {
    if text.is_empty() {
        return Ok(None);
    }
    let shown = || Shown(text).to_string();
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match unsigned.iter().position(|byte| *byte == b'.') {
        Some(point) => (&unsigned[..point], Some(&unsigned[point + 1..])),
        None => (unsigned, None),
    };
    if !digits(whole) || !fraction.is_none_or(digits) {
        return Err(TimestampError::Syntax(shown()));
    }
    if unsigned.len() < text.len() {
        return Err(TimestampError::Negative(shown()));
    }
    let ms = match fraction {
        None => number(whole),
        Some(fraction) => number(whole)
            .and_then(|seconds| seconds.checked_mul(1000))
            .and_then(|ms| ms.checked_add(milliseconds(fraction))),
    };
    ms.map(Some).ok_or_else(|| TimestampError::TooLarge(shown()))
}

fn digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn number(digits: &[u8]) -> Option<i64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

fn milliseconds(fraction: &[u8]) -> i64 {
    let digit = |place: usize| i64::from(fraction.get(place).map_or(0, |digit| digit - b'0'));
    digit(0) * 100 + digit(1) * 10 + digit(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_milliseconds() {
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"0"), Ok(Some(0)));
        assert_eq!(parse(b"1700000000123"), Ok(Some(1_700_000_000_123)));
        assert_eq!(parse(b"9223372036854775807"), Ok(Some(i64::MAX)));
    }

    #[test]
    fn a_decimal_point_means_seconds() {
        assert_eq!(parse(b"1700000000.123"), Ok(Some(1_700_000_000_123)));
        assert_eq!(parse(b"1700000000.0"), Ok(Some(1_700_000_000_000)));
        assert_eq!(parse(b"1700000000.5"), Ok(Some(1_700_000_000_500)));
        assert_eq!(parse(b"1700000000.05"), Ok(Some(1_700_000_000_050)));
        assert_eq!(parse(b"1700000000.123999"), Ok(Some(1_700_000_000_123)));
        assert_eq!(parse(b"0.001"), Ok(Some(1)));
        assert_eq!(parse(b"9223372036854775.807"), Ok(Some(i64::MAX)));
    }

    #[test]
    fn anything_else_says_why() {
        for bad in ["now", "1.", ".5", ".", "1.2.3", "1e3", " 1", "+1", "-", "1,5", "0x10", "--1"] {
            let error = parse(bad.as_bytes());
            assert!(matches!(error, Err(TimestampError::Syntax(_))), "{bad}: {error:?}");
        }
        assert_eq!(parse(b"-1").unwrap_err().to_string(), "the timestamp \"-1\" is before 1970");
        assert!(matches!(parse(b"-0.5"), Err(TimestampError::Negative(_))));
        for bad in ["9223372036854775808", "9223372036854775.808", "99999999999999999999.1"] {
            let error = parse(bad.as_bytes());
            assert!(matches!(error, Err(TimestampError::TooLarge(_))), "{bad}: {error:?}");
        }
        assert!(matches!(parse(b"\xff"), Err(TimestampError::Syntax(_))));
    }
}
