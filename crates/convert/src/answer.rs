//! The JSON documents that the module answers with.

use crate::json::push_string;

const SENT: &str = "message sent";
const QUEUED: &str = "message queued";

/// The end of one record of a request that makes several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordAnswer<'a> {
    pub topic: &'a str,
    pub outcome: Outcome<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    Written {
        partition: Option<i32>,
        /// Unknown with `acks 0`, or for a duplicate that the broker recognised.
        offset: Option<i64>,
    },
    Failed {
        status: u16,
        /// What the client may read.
        error: &'a [u8],
    },
}

/// The success of a request that always makes exactly one record.
pub fn sent(topic: &str, partition: Option<i32>, offset: Option<i64>) -> Vec<u8> {
    let mut out = Vec::with_capacity(80 + topic.len());
    push_member(&mut out, b'{', "message", SENT.as_bytes());
    push_member(&mut out, b',', "topic", topic.as_bytes());
    push_place(&mut out, partition, offset);
    out.push(b'}');
    out
}

/// All records of a request, in order, and the status of the whole: `success` where all were
/// written, else the worst. The message is that status' reason phrase unless all went well.
pub fn records(records: &[RecordAnswer<'_>], success: u16) -> (u16, Vec<u8>) {
    let statuses = records.iter().map(|record| match record.outcome {
        Outcome::Written { .. } => success,
        Outcome::Failed { status, .. } => status,
    });
    let status = worst_status(statuses).unwrap_or(success);
    let message = if is_success(status) { SENT } else { reason_phrase(status) };
    let mut out = Vec::with_capacity(40 + 80 * records.len());
    push_member(&mut out, b'{', "message", message.as_bytes());
    out.extend_from_slice(b",\"records\":");
    let mut before = b'[';
    for record in records {
        out.push(before);
        before = b',';
        push_record(&mut out, record);
    }
    if before == b'[' {
        out.push(b'[');
    }
    out.extend_from_slice(b"]}");
    (status, out)
}

/// The answer of async mode.
pub fn queued() -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    push_member(&mut out, b'{', "message", QUEUED.as_bytes());
    out.push(b'}');
    out
}

/// The failure of a whole request.
pub fn error(status: u16, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + text.len());
    push_member(&mut out, b'{', "message", reason_phrase(status).as_bytes());
    push_member(&mut out, b',', "error", text);
    out.push(b'}');
    out
}

/// The status that stands for several: 504 (possibly written) before 503 (try again) before other
/// 5xx before 4xx before success; the first of equals. `None` without any.
pub fn worst_status(statuses: impl IntoIterator<Item = u16>) -> Option<u16> {
    let rank = |status: u16| match status {
        504 => 4,
        503 => 3,
        500.. => 2,
        400.. => 1,
        _ => 0,
    };
    statuses
        .into_iter()
        .reduce(|worst, status| if rank(status) > rank(worst) { status } else { worst })
}

/// RFC 9110 §15.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn push_record(out: &mut Vec<u8>, record: &RecordAnswer<'_>) {
    push_member(out, b'{', "topic", record.topic.as_bytes());
    match record.outcome {
        Outcome::Written { partition, offset } => push_place(out, partition, offset),
        Outcome::Failed { status, error } => {
            push_member(out, b',', "error", error);
            push_number(out, "status", Some(status));
        }
    }
    out.push(b'}');
}

fn push_place(out: &mut Vec<u8>, partition: Option<i32>, offset: Option<i64>) {
    push_number(out, "partition", partition);
    push_number(out, "offset", offset);
}

fn push_member(out: &mut Vec<u8>, before: u8, name: &str, value: &[u8]) {
    out.push(before);
    push_string(out, name.as_bytes());
    out.push(b':');
    push_string(out, value);
}

fn push_number(out: &mut Vec<u8>, name: &str, value: Option<impl ToString>) {
    out.push(b',');
    push_string(out, name.as_bytes());
    out.push(b':');
    match value {
        Some(value) => out.extend_from_slice(value.to_string().as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn one_record() {
        assert_eq!(
            text(sent("t", Some(0), Some(12))),
            r#"{"message":"message sent","topic":"t","partition":0,"offset":12}"#
        );
        assert_eq!(
            text(sent("t", Some(3), None)),
            r#"{"message":"message sent","topic":"t","partition":3,"offset":null}"#
        );
        assert_eq!(text(queued()), r#"{"message":"message queued"}"#);
    }

    #[test]
    fn several_records_that_were_all_written() {
        let written = |topic, offset| RecordAnswer {
            topic,
            outcome: Outcome::Written { partition: Some(1), offset },
        };
        let (status, body) = records(&[written("a", Some(i64::MAX)), written("b", None)], 200);
        assert_eq!(status, 200);
        assert_eq!(
            text(body),
            "{\"message\":\"message sent\",\"records\":[\
             {\"topic\":\"a\",\"partition\":1,\"offset\":9223372036854775807},\
             {\"topic\":\"b\",\"partition\":1,\"offset\":null}]}"
        );
        let (status, body) = records(&[], 200);
        assert_eq!(
            (status, text(body).as_str()),
            (200, r#"{"message":"message sent","records":[]}"#)
        );
    }

    #[test]
    fn the_worst_record_speaks_for_all() {
        let answers = [
            RecordAnswer {
                topic: "a",
                outcome: Outcome::Written { partition: Some(0), offset: Some(7) },
            },
            RecordAnswer {
                topic: "b",
                outcome: Outcome::Failed { status: 404, error: b"topic does not exist" },
            },
            RecordAnswer {
                topic: "c",
                outcome: Outcome::Failed { status: 504, error: b"delivery outcome unknown" },
            },
        ];
        let (status, body) = records(&answers, 200);
        assert_eq!(status, 504);
        assert_eq!(
            text(body),
            "{\"message\":\"Gateway Timeout\",\"records\":[\
             {\"topic\":\"a\",\"partition\":0,\"offset\":7},\
             {\"topic\":\"b\",\"error\":\"topic does not exist\",\"status\":404},\
             {\"topic\":\"c\",\"error\":\"delivery outcome unknown\",\"status\":504}]}"
        );
    }

    #[test]
    fn statuses_from_worst_to_best() {
        assert_eq!(worst_status([200, 404, 502, 503, 504]), Some(504));
        assert_eq!(worst_status([503, 502, 413]), Some(503));
        assert_eq!(worst_status([413, 502, 500]), Some(502));
        assert_eq!(worst_status([404, 413, 200]), Some(404));
        assert_eq!(worst_status([201]), Some(201));
        assert_eq!(worst_status([]), None);
    }

    #[test]
    fn errors_quote_whatever_they_are_about() {
        assert_eq!(
            text(error(403, b"one or more target topics are not in the allowed topics list")),
            "{\"message\":\"Forbidden\",\
             \"error\":\"one or more target topics are not in the allowed topics list\"}"
        );
        assert_eq!(
            text(error(400, b"bad \"\xff\n\"")),
            "{\"message\":\"Bad Request\",\"error\":\"bad \\\"\u{fffd}\\n\\\"\"}"
        );
        assert_eq!(reason_phrase(413), "Content Too Large");
        assert_eq!(reason_phrase(422), "Unprocessable Content");
        assert_eq!(reason_phrase(503), "Service Unavailable");
        assert_eq!(reason_phrase(405), "Method Not Allowed");
    }
}
