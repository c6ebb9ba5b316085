//! What a worker process owns.

use core::cell::RefCell;
use std::rc::Rc;

use kafka::{MILLISECOND, Micros};
use nginx_sys::{
    NGX_PROCESS_HELPER, ngx_core_conf_t, ngx_core_module, ngx_cycle_t, ngx_process, ngx_uint_t,
};

use crate::conf;
use crate::driver::Driver;
use crate::resolve::Resolver;

const READ_BUFFER: usize = 64 * 1024;

thread_local! {
    /// One per cluster, in the order of the configuration.
    static DRIVERS: RefCell<Vec<Rc<Driver>>> = const { RefCell::new(Vec::new()) };
}

/// The driver of a cluster.
pub fn driver(cluster: usize) -> Option<Rc<Driver>> {
    DRIVERS.with_borrow(|drivers| drivers.get(cluster).cloned())
}

/// No connection is made before there is something to send.
///
/// # Safety
/// nginx calls it once at the start of a process, with its cycle.
pub unsafe fn init(cycle: *mut ngx_cycle_t) {
    // SAFETY: as the caller promises. The cache manager and loader handle no requests.
    let (helper, clusters, shutdown_timeout) = unsafe {
        let helper = ngx_process == NGX_PROCESS_HELPER as ngx_uint_t;
        (helper, conf::clusters(cycle), shutdown_timeout(cycle))
    };
    if helper || clusters.is_empty() {
        return;
    }
    // SAFETY: as the caller promises.
    let resolver = Rc::new(unsafe { Resolver::new(cycle) });
    let buffer = Rc::new(RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()));
    let drivers = clusters
        .iter()
        .map(|conf| Driver::new(conf, shutdown_timeout, resolver.clone(), buffer.clone()))
        .collect();
    DRIVERS.set(drivers);
}

/// Drops what has not been delivered, and closes all sockets: nginx looks for open ones next.
///
/// # Safety
/// nginx calls it once at the end of a process.
pub unsafe fn exit(_cycle: *mut ngx_cycle_t) {
    for driver in DRIVERS.take() {
        driver.exit();
    }
}

/// `worker_shutdown_timeout`.
///
/// # Safety
/// `cycle` is the worker's.
unsafe fn shutdown_timeout(cycle: *mut ngx_cycle_t) -> Option<Micros> {
    // SAFETY: the core module's configuration stands at its index in every cycle.
    let timeout = unsafe {
        let conf: *const ngx_core_conf_t = (*(*cycle).conf_ctx.add(ngx_core_module.index)).cast();
        (*conf).shutdown_timeout
    };
    (timeout > 0).then_some(timeout as Micros * MILLISECOND)
}
