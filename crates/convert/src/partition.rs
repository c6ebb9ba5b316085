//! The partition that `kafka_partition` yields.

use crate::shown::Shown;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the partition {0} is not a whole number from 0 to 2147483647")]
pub struct PartitionError(String);

/// Empty is `None`: any partition. Whether the topic has this partition, only its cluster knows.
pub fn parse(text: &[u8]) -> Result<Option<i32>, PartitionError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(text).ok().filter(|_| digits).and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| PartitionError(Shown(text).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_or_nothing() {
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"0"), Ok(Some(0)));
        assert_eq!(parse(b"007"), Ok(Some(7)));
        assert_eq!(parse(b"2147483647"), Ok(Some(i32::MAX)));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["-1", "+1", "2147483648", "99999999999999999999", "1.0", " 1", "1 ", "0x1", "a"]
        {
            assert_eq!(
                parse(bad.as_bytes()).unwrap_err().to_string(),
                format!("the partition \"{bad}\" is not a whole number from 0 to 2147483647")
            );
        }
        assert!(parse(b"\xff").is_err());
    }
}
