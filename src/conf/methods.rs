//! `kafka_methods METHOD …`.

use nginx_sys::{
    NGX_HTTP_COPY, NGX_HTTP_DELETE, NGX_HTTP_GET, NGX_HTTP_HEAD, NGX_HTTP_LOCK, NGX_HTTP_MKCOL,
    NGX_HTTP_MOVE, NGX_HTTP_OPTIONS, NGX_HTTP_PATCH, NGX_HTTP_POST, NGX_HTTP_PROPFIND,
    NGX_HTTP_PROPPATCH, NGX_HTTP_PUT, NGX_HTTP_UNLOCK,
};

use super::args::{Invalid, invalid};
use super::suggest::nearest;

/// The methods that nginx knows and hands to content handlers: it refuses TRACE and CONNECT itself.
const KNOWN: [(&str, u32); 14] = [
    ("GET", NGX_HTTP_GET),
    ("HEAD", NGX_HTTP_HEAD),
    ("POST", NGX_HTTP_POST),
    ("PUT", NGX_HTTP_PUT),
    ("PATCH", NGX_HTTP_PATCH),
    ("DELETE", NGX_HTTP_DELETE),
    ("OPTIONS", NGX_HTTP_OPTIONS),
    ("MKCOL", NGX_HTTP_MKCOL),
    ("COPY", NGX_HTTP_COPY),
    ("MOVE", NGX_HTTP_MOVE),
    ("PROPFIND", NGX_HTTP_PROPFIND),
    ("PROPPATCH", NGX_HTTP_PROPPATCH),
    ("LOCK", NGX_HTTP_LOCK),
    ("UNLOCK", NGX_HTTP_UNLOCK),
];

/// The methods that a location takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Methods {
    /// `NGX_HTTP_POST` and so on.
    pub mask: usize,
    /// In the order of the directive, for the `Allow` header.
    pub names: Vec<String>,
}

impl Default for Methods {
    fn default() -> Self {
        Self::parse("kafka_methods", &["POST", "PUT", "PATCH", "DELETE"])
            .expect("the default methods are known")
    }
}

impl Methods {
    /// Names match without case, as in `limit_except`.
    pub fn parse(directive: &str, words: &[&str]) -> Result<Self, Invalid> {
        let mut methods = Self { mask: 0, names: Vec::new() };
        for word in words {
            let upper = word.to_ascii_uppercase();
            let Some((name, bit)) = KNOWN.iter().find(|(name, _)| *name == upper) else {
                return Err(match nearest(&upper, KNOWN.map(|(name, _)| name)) {
                    Some(near) => invalid(
                        directive,
                        word,
                        &format!("an HTTP method, did you mean \"{near}\"?"),
                    ),
                    None => invalid(directive, word, &format!("one of: {}", names())),
                });
            };
            let bit = *bit as usize;
            if methods.mask & bit != 0 {
                return Err(format!(
                    "duplicate method \"{name}\" in \"{directive}\" directive, write it once"
                ));
            }
            methods.mask |= bit;
            methods.names.push((*name).to_owned());
        }
        Ok(methods)
    }
}

fn names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_does_not_let_crawlers_produce() {
        let methods = Methods::default();
        assert_eq!(methods.names, ["POST", "PUT", "PATCH", "DELETE"]);
        assert_eq!(methods.mask & (NGX_HTTP_GET | NGX_HTTP_HEAD) as usize, 0);
    }

    #[test]
    fn names_match_without_case_and_only_known_ones() {
        let methods = Methods::parse("kafka_methods", &["get", "Post"]).unwrap();
        assert_eq!(methods.names, ["GET", "POST"]);
        assert_eq!(methods.mask, (NGX_HTTP_GET | NGX_HTTP_POST) as usize);
        let error = Methods::parse("kafka_methods", &["PSOT"]).unwrap_err();
        assert!(error.ends_with("did you mean \"POST\"?"), "{error}");
        assert!(Methods::parse("kafka_methods", &["TRACE"]).is_err());
        assert!(Methods::parse("kafka_methods", &["GET", "get"]).is_err());
    }
}
