//! One request becomes its records.

use std::rc::Rc;

use convert::{partition, timestamp, topic};
use kafka::Record;
use nginx_sys::{NGX_HTTP_INTERNAL_SERVER_ERROR, ngx_http_request_t, ngx_int_t};

use super::body::{Body, Bytes};
use super::{Failure, Waiter};
use crate::conf::{self, ComplexValue, EmptyBody, LocationConf, ValueSource};
use crate::driver::Driver;
use crate::event::{monotonic, wall_ms};
use crate::worker;

const NOT_ALLOWED: &str = "one or more target topics are not in the allowed topics list";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The driver answers.
    Wait,
    /// For `ngx_http_finalize_request`.
    Finish(ngx_int_t),
}

/// # Safety
/// `r` is a live request whose body has been read.
pub unsafe fn produce(r: *mut ngx_http_request_t) -> Step {
    const INTERNAL_ERROR: Step = Step::Finish(NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t);
    // SAFETY: as the caller promises.
    unsafe {
        let Some(conf) = conf::location(r) else { return INTERNAL_ERROR };
        let Some(driver) = conf.cluster.and_then(worker::driver) else { return INTERNAL_ERROR };
        let Some(waiter) = Waiter::attach(r, conf, monotonic()) else { return INTERNAL_ERROR };
        match send(r, conf, &driver, &waiter) {
            Ok(()) if !conf.async_ => return Step::Wait,
            Ok(()) => waiter.queued(),
            Err(failure) => waiter.fail(failure),
        }
        Step::Finish(waiter.answer_now(|| driver.retry_after_seconds()))
    }
}

/// The names to send to.
enum Topics<'a> {
    Constant(&'a [String]),
    Parsed(Vec<&'a str>),
}

impl<'a> Topics<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a str> {
        let (constant, parsed) = match self {
            Self::Constant(names) => (*names, &[][..]),
            Self::Parsed(names) => (&[][..], &names[..]),
        };
        constant.iter().map(String::as_str).chain(parsed.iter().copied())
    }
}

/// # Safety
/// `r` is a live request in the location of `conf`, whose body has been read.
unsafe fn send(
    r: *mut ngx_http_request_t,
    conf: &'static LocationConf,
    driver: &Driver,
    waiter: &Rc<Waiter>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises; evaluated values lie in the request's pool or in the
    // configuration, and so do the names in them.
    unsafe {
        let topics = topics(r, conf)?;
        waiter.set_topics(topics.iter());
        if !topics.iter().all(|topic| conf.allowed_topics_permit(topic.as_bytes())) {
            return Err(Failure::own(403, "topic_not_allowed", NOT_ALLOWED));
        }
        let value = value(r, conf, driver)?;
        let evaluate = |value: &'static Option<ComplexValue>| match value {
            Some(value) => value.evaluate(r).ok_or_else(Failure::internal),
            None => Ok(&[][..]),
        };
        let key = Some(evaluate(&conf.key)?).filter(|key| !key.is_empty());
        let partition = partition::parse(evaluate(&conf.partition)?)
            .map_err(|error| Failure::own(400, "invalid_partition", error.to_string()))?;
        let timestamp = timestamp::parse(evaluate(&conf.timestamp)?)
            .map_err(|error| Failure::own(400, "invalid_timestamp", error.to_string()))?;
        let headers = headers(r, conf)?;
        let record = |topic| Record {
            topic,
            partition,
            key,
            value: value.as_ref().map(Bytes::as_slice),
            headers: &headers,
            timestamp_ms: timestamp.unwrap_or_else(wall_ms),
            token: 0,
        };
        let waits = (!conf.async_).then_some(waiter);
        let mut names = topics.iter();
        match (names.next(), names.next()) {
            (Some(topic), None) => driver.append(&mut [record(topic)], waits),
            _ => {
                let mut records: Vec<Record<'_>> = topics.iter().map(record).collect();
                driver.append(&mut records, waits)
            }
        }
    }
}

/// # Safety
/// As [`send`].
unsafe fn topics(
    r: *mut ngx_http_request_t,
    conf: &'static LocationConf,
) -> Result<Topics<'static>, Failure> {
    let Some(topic) = &conf.topic else { return Err(Failure::internal()) };
    if let Some(names) = &topic.constant {
        return Ok(Topics::Constant(names));
    }
    // SAFETY: as the caller promises. The lifetime is that of the request's pool, which the
    // caller does not exceed.
    let text = unsafe { topic.value.evaluate(r) }.ok_or_else(Failure::internal)?;
    topic::parse_list(text)
        .map(Topics::Parsed)
        .map_err(|error| Failure::own(400, "invalid_topic", error.to_string()))
}

/// `None` is a tombstone.
///
/// # Safety
/// As [`send`].
unsafe fn value(
    r: *mut ngx_http_request_t,
    conf: &LocationConf,
    driver: &Driver,
) -> Result<Option<Bytes<'static>>, Failure> {
    if conf.value == ValueSource::None {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let body = unsafe { Body::of(r) };
    match (body.len(), conf.empty_body) {
        (0, EmptyBody::Value) => return Ok(Some(Bytes::Borrowed(&[]))),
        (0, EmptyBody::Null) => return Ok(None),
        (0, EmptyBody::Reject) => {
            return Err(Failure::own(400, "empty_body", "the request body is empty"));
        }
        _ => {}
    }
    // Not read from its file only to be refused.
    let limit = driver.max_message_size();
    if body.len() > limit {
        let reason = format!("the body takes {} bytes, the limit is {limit}", body.len());
        return Err(Failure::own(413, "too_large", reason));
    }
    // SAFETY: as the caller promises.
    unsafe { body.bytes() }.map(Some).map_err(|error| {
        crate::log::write(
            kafka::Severity::Error,
            format_args!("kafka: the request body cannot be read from its file: {error}"),
        );
        Failure::internal()
    })
}

type Header<'a> = (&'a [u8], Option<&'a [u8]>);

/// # Safety
/// As [`send`].
unsafe fn headers(
    r: *mut ngx_http_request_t,
    conf: &'static LocationConf,
) -> Result<Vec<Header<'static>>, Failure> {
    let mut headers = Vec::with_capacity(conf.headers.len());
    for header in &conf.headers {
        // SAFETY: as the caller promises.
        let value = unsafe { header.value.evaluate(r) }.ok_or_else(Failure::internal)?;
        if !value.is_empty() {
            headers.push((&header.name[..], Some(value)));
        }
    }
    Ok(headers)
}
