//! The directives: what they take, how they are checked, and the settings that come out.

mod allowed_topics;
mod args;
mod cluster;
mod commands;
mod complex_value;
mod location;
mod location_directives;
mod merge;
mod methods;
mod position;
mod suggest;
mod variables;

use core::ptr::NonNull;

use nginx_sys::{ngx_cycle_t, ngx_http_request_t, ngx_resolver_t};
use ngx::http::{HttpModuleLocationConf, HttpModuleMainConf};

pub use cluster::ClusterConf;
pub use commands::COMMANDS;
pub use complex_value::ComplexValue;
pub use location::{EmptyBody, LocationConf, ValueSource};
pub use merge::merge_location;
pub use variables::add_variables;

use crate::KafkaModule;

/// What stands in the `http` block.
#[derive(Default)]
pub struct MainConf {
    /// In the order of the file.
    pub clusters: Vec<ClusterConf>,
    /// For the names of brokers, where the `http` block has no `resolver`; of the same cycle.
    pub resolver: Option<NonNull<ngx_resolver_t>>,
}

/// The settings of the location that a request is in; changes with internal redirects.
///
/// # Safety
/// `r` is a live request. The settings live as long as the cycle, which outlives all its requests.
pub unsafe fn location(r: *mut ngx_http_request_t) -> Option<&'static LocationConf> {
    // SAFETY: as the caller promises.
    KafkaModule::location_conf(unsafe { r.as_ref()? })
}

/// The clusters of a cycle; empty without an `http` block.
///
/// # Safety
/// `cycle` is a live cycle. In a worker it lives as long as the process.
pub unsafe fn clusters(cycle: *mut ngx_cycle_t) -> &'static [ClusterConf] {
    // SAFETY: as the caller promises.
    let main = unsafe { cycle.as_ref() }.and_then(KafkaModule::main_conf);
    main.map_or(&[], |main| &main.clusters)
}
