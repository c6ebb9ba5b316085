//! How settings come down from `http` through `server` to a location, and the checks that need the
//! result. nginx merges when it has read the whole `http` block: all clusters are known by then.

use core::ptr;

use nginx_sys::{ngx_conf_t, ngx_http_request_t, ngx_int_t};
use ngx::http::{HttpModuleLocationConf, HttpModuleMainConf, NgxHttpCoreModule};

use super::MainConf;
use super::args::Invalid;
use super::location::{EmptyBody, LocationConf, Pass, TopicConf, ValueSource};
use super::position::Position;
use crate::KafkaModule;

pub const MEANINGLESS_EMPTY_BODY: &str =
    "\"kafka_empty_body\" is meaningless with \"kafka_value none\", remove one of them";

pub const SECOND_HANDLER: &str =
    "\"kafka_pass\" conflicts with another content handler of this location, keep one of them";

pub const HANDLER: unsafe extern "C" fn(*mut ngx_http_request_t) -> ngx_int_t =
    crate::http::handler::content_handler;

/// Merges `outer` into `inner`. `false`: a check failed, and its reason is logged.
pub fn merge_location(cf: &mut ngx_conf_t, outer: &LocationConf, inner: &mut LocationConf) -> bool {
    let outcome = adopt_pass(cf, outer, inner).and_then(|()| inner.inherit(outer));
    if let Err((position, message)) = outcome {
        position.emerg(cf, message);
        return false;
    }
    inner.resolve();
    let Some(pass) = &inner.pass else { return true };
    match check(cf, pass, inner) {
        Ok(cluster) => {
            inner.cluster = Some(cluster);
            true
        }
        Err((position, message)) => {
            position.emerg(cf, message);
            false
        }
    }
}

/// `if` and `limit_except` are nameless locations: the handler of the location around them runs
/// with their settings, so `kafka_pass` follows, as `proxy_pass` does. It does not follow into
/// other nested locations.
fn adopt_pass(
    cf: &mut ngx_conf_t,
    outer: &LocationConf,
    inner: &mut LocationConf,
) -> Result<(), (Position, Invalid)> {
    let Some(core) = NgxHttpCoreModule::location_conf_mut(cf) else { return Ok(()) };
    if let Some(pass) = &inner.pass {
        let ours = |handler| ptr::fn_addr_eq(handler, HANDLER);
        // A directive below `kafka_pass`, such as `proxy_pass`, has put itself in its place.
        return match core.handler {
            Some(handler) if ours(handler) => Ok(()),
            _ => Err((pass.position.clone(), SECOND_HANDLER.into())),
        };
    }
    if core.noname() != 0 {
        inner.pass = outer.pass.clone();
        if inner.pass.is_some() && core.lmt_excpt() != 0 && core.handler.is_none() {
            core.handler = Some(HANDLER);
        }
    }
    Ok(())
}

fn check(
    cf: &mut ngx_conf_t,
    pass: &Pass,
    location: &LocationConf,
) -> Result<usize, (Position, Invalid)> {
    let cluster = match KafkaModule::main_conf(cf) {
        Some(main) => find_cluster(main, pass)?,
        None => unknown_cluster(&[], pass)?,
    };
    let Some(topic) = &location.topic else {
        return Err((
            pass.position.clone(),
            format!(
                "\"kafka_pass {}\" has no \"kafka_topic\", add \"kafka_topic NAME;\"",
                pass.cluster
            ),
        ));
    };
    check_allowed(cf, topic, location)?;
    Ok(cluster)
}

fn find_cluster(main: &MainConf, pass: &Pass) -> Result<usize, (Position, Invalid)> {
    match main.clusters.iter().position(|cluster| cluster.name == pass.cluster) {
        Some(index) => Ok(index),
        None => {
            let known: Vec<_> = main.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
            unknown_cluster(&known, pass)
        }
    }
}

fn unknown_cluster(known: &[&str], pass: &Pass) -> Result<usize, (Position, Invalid)> {
    let name = &pass.cluster;
    let hint = match known {
        [] => format!("add \"kafka_cluster {name} {{ … }}\" to the http block"),
        known => format!("write one of: {}", known.join(", ")),
    };
    Err((
        pass.position.clone(),
        format!("unknown kafka_cluster \"{name}\" in \"kafka_pass\" directive, {hint}"),
    ))
}

fn check_allowed(
    cf: &ngx_conf_t,
    topic: &TopicConf,
    location: &LocationConf,
) -> Result<(), (Position, Invalid)> {
    match &topic.constant {
        None if location.allowed_topics.is_none() => Err((
            topic.position.clone(),
            "\"kafka_topic\" holds a variable, so that requests choose the topic: \
             add \"kafka_allowed_topics NAME …;\" (\"~.\" allows every topic)"
                .into(),
        )),
        None => Ok(()),
        Some(names) => {
            for name in names.iter().filter(|name| !location.allowed_topics_permit(name.as_bytes()))
            {
                topic.position.warn(
                    cf,
                    format_args!(
                        "\"kafka_topic {name}\" is not in \"kafka_allowed_topics\": \
                         every request will be answered with 403"
                    ),
                );
            }
            Ok(())
        }
    }
}

impl LocationConf {
    fn inherit(&mut self, outer: &Self) -> Result<(), (Position, Invalid)> {
        let (inner, outer) = (&mut self.set, &outer.set);
        if let (Some((_, position)), None, Some(ValueSource::None)) =
            (&inner.empty_body, inner.value, outer.value)
        {
            return Err((position.clone(), MEANINGLESS_EMPTY_BODY.into()));
        }
        inherit(&mut inner.methods, &outer.methods);
        inherit(&mut inner.topic, &outer.topic);
        inherit(&mut inner.allowed_topics, &outer.allowed_topics);
        inherit(&mut inner.key, &outer.key);
        inherit(&mut inner.partition, &outer.partition);
        inherit(&mut inner.timestamp, &outer.timestamp);
        inherit(&mut inner.value, &outer.value);
        inherit(&mut inner.empty_body, &outer.empty_body);
        inherit(&mut inner.headers, &outer.headers);
        inherit(&mut inner.async_, &outer.async_);
        inherit(&mut inner.error_detail, &outer.error_detail);
        inherit(&mut inner.success_status, &outer.success_status);
        inherit(&mut inner.ignore_client_abort, &outer.ignore_client_abort);
        Ok(())
    }

    /// Fills the plain fields from the merged settings.
    fn resolve(&mut self) {
        let set = self.set.clone();
        self.methods = set.methods.unwrap_or_default();
        self.topic = set.topic;
        self.allowed_topics = set.allowed_topics;
        self.key = set.key;
        self.partition = set.partition;
        self.timestamp = set.timestamp;
        self.value = set.value.unwrap_or(ValueSource::Body);
        self.empty_body = set.empty_body.map_or(EmptyBody::Value, |(body, _)| body);
        self.headers = set.headers.unwrap_or_default();
        self.async_ = set.async_.unwrap_or(false);
        self.error_detail = set.error_detail.unwrap_or(false);
        self.success_status = set.success_status;
        self.ignore_client_abort = set.ignore_client_abort.unwrap_or(true);
    }
}

fn inherit<T: Clone>(inner: &mut Option<T>, outer: &Option<T>) {
    if inner.is_none() {
        inner.clone_from(outer);
    }
}
