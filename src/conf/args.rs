//! The words of a directive, and the values that they stand for.

use core::slice;

use kafka::{MILLISECOND, Micros};
use nginx_sys::{ngx_conf_t, ngx_parse_size, ngx_parse_time, ngx_str_t};

/// A `timeout_ms` field of the protocol is an `i32`: 24.8 days.
const MAX_TIME_MS: u64 = i32::MAX as u64;

/// What is wrong with a directive, and what to write instead.
pub type Invalid = String;

/// The directive's name and its arguments. They lie in the configuration's pool, each followed by
/// NUL.
pub fn words(cf: &ngx_conf_t) -> &'static [ngx_str_t] {
    // SAFETY: nginx sets `args` to an array of at least one `ngx_str_t` for each directive that it
    // hands out. Only the array itself is reused for the next directive, so nobody keeps it.
    unsafe {
        let args = &*cf.args;
        slice::from_raw_parts(args.elts.cast(), args.nelts)
    }
}

/// The directive has too many arguments or too few.
pub fn wrong_count(name: &str, usage: &str) -> Invalid {
    format!("invalid number of arguments in \"{name}\" directive, use \"{name} {usage};\"")
}

/// The value is none of those that the directive takes; `must` completes "it must be …".
pub fn invalid(name: &str, value: &str, must: &str) -> Invalid {
    format!("invalid value \"{value}\" in \"{name}\" directive, it must be {must}")
}

pub fn utf8<'a>(name: &str, word: &'a ngx_str_t) -> Result<&'a str, Invalid> {
    word.to_str().map_err(|_| {
        invalid(name, &String::from_utf8_lossy(word.as_bytes()), "valid UTF-8 without other bytes")
    })
}

/// `on` or `off`, without case as in nginx.
pub fn flag(name: &str, value: &str) -> Result<bool, Invalid> {
    if value.eq_ignore_ascii_case("on") {
        Ok(true)
    } else if value.eq_ignore_ascii_case("off") {
        Ok(false)
    } else {
        Err(invalid(name, value, "\"on\" or \"off\""))
    }
}

/// One of a few words.
pub fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, Invalid> {
    choices.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let (last, others) = words.split_last().expect("a directive has choices");
        let must = match others {
            [] => last.clone(),
            others => format!("{} or {last}", others.join(", ")),
        };
        invalid(name, value, &must)
    })
}

/// A time as nginx writes it; a bare number counts seconds.
pub fn time(name: &str, value: &str) -> Result<Micros, Invalid> {
    let mut text = borrowed(value);
    // SAFETY: nginx only reads the text.
    let ms = unsafe { ngx_parse_time(&raw mut text, 0) };
    match u64::try_from(ms) {
        Ok(ms) if value.is_empty() || ms > MAX_TIME_MS => {
            Err(invalid(name, value, "a time of at most 24 days"))
        }
        Ok(ms) => Ok(ms * MILLISECOND),
        Err(_) => Err(invalid(name, value, "a time such as \"500ms\", \"5s\" or \"1m\"")),
    }
}

/// A time that must be longer than zero.
pub fn positive_time(name: &str, value: &str) -> Result<Micros, Invalid> {
    match time(name, value)? {
        0 => Err(invalid(name, value, "longer than zero, such as \"5s\"")),
        time => Ok(time),
    }
}

/// A size as nginx writes it, at least 1 and at most `max`.
pub fn size(name: &str, value: &str, max: usize) -> Result<usize, Invalid> {
    let mut text = borrowed(value);
    // SAFETY: nginx only reads the text.
    let size = unsafe { ngx_parse_size(&raw mut text) };
    match usize::try_from(size) {
        Err(_) => Err(invalid(name, value, "a size in bytes, or such as \"256k\" or \"32m\"")),
        Ok(0) => Err(invalid(name, value, "larger than zero, such as \"256k\"")),
        Ok(size) if size > max => {
            Err(invalid(name, value, &format!("at most \"{}m\"", max / (1024 * 1024))))
        }
        Ok(size) => Ok(size),
    }
}

/// A whole number of a range.
pub fn number(name: &str, value: &str, min: usize, max: usize) -> Result<usize, Invalid> {
    digits(value)
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| invalid(name, value, &format!("a whole number from {min} to {max}")))
}

/// Digits only: `usize::from_str` would take a sign too.
fn digits(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn borrowed(text: &str) -> ngx_str_t {
    ngx_str_t { len: text.len(), data: text.as_ptr().cast_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_nginx_times() {
        assert_eq!(time("linger", "0"), Ok(0));
        assert_eq!(time("linger", "5ms"), Ok(5_000));
        assert_eq!(time("linger", "5"), Ok(5_000_000));
        assert_eq!(time("linger", "1m 30s"), Ok(90_000_000));
        assert_eq!(time("linger", "1m30s"), Ok(90_000_000));
        let text = "invalid value \"5x\" in \"linger\" directive, \
                    it must be a time such as \"500ms\", \"5s\" or \"1m\"";
        assert_eq!(time("linger", "5x"), Err(text.into()));
        for bad in ["", "-1", "ms", "5 s x", "99999999999999999999", "25d", "1y"] {
            assert!(time("linger", bad).is_err(), "{bad}");
        }
        assert!(positive_time("delivery_timeout", "0").is_err());
        assert_eq!(positive_time("delivery_timeout", "24d"), Ok(24 * 86_400_000_000));
    }

    #[test]
    fn sizes_are_nginx_sizes() {
        assert_eq!(size("batch_size", "1", 1 << 30), Ok(1));
        assert_eq!(size("batch_size", "256k", 1 << 30), Ok(256 * 1024));
        assert_eq!(size("batch_size", "1M", 1 << 30), Ok(1024 * 1024));
        for bad in ["", "0", "0k", "-1", "1g", "k", "1.5m", "2000m", "99999999999999999999"] {
            assert!(size("batch_size", bad, 1 << 30).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_ignore_case_and_numbers_take_digits_only() {
        assert_eq!(flag("kafka_async", "ON"), Ok(true));
        assert_eq!(flag("kafka_async", "off"), Ok(false));
        let text = "invalid value \"yes\" in \"kafka_async\" directive, \
                    it must be \"on\" or \"off\"";
        assert_eq!(flag("kafka_async", "yes"), Err(text.into()));
        assert_eq!(number("max_topics", "1000", 1, 2000), Ok(1000));
        for bad in ["", "0", "2001", "+5", "-5", "5 ", "five"] {
            assert!(number("max_topics", bad, 1, 2000).is_err(), "{bad}");
        }
    }
}
