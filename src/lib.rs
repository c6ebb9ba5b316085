//! nginx module that turns HTTP requests into Kafka records.
//!
//! This crate is nginx's side of it: directives, handlers, sockets, timers. The producer is the
//! crate `kafka`, conversions are the crate `convert`; neither knows nginx.

use core::ffi::{c_char, c_void};
use core::ptr;

use nginx_sys::{
    NGX_ERROR, NGX_HTTP_MODULE, NGX_OK, ngx_command_t, ngx_conf_t, ngx_cycle_t, ngx_http_module_t,
    ngx_int_t, ngx_module_t, ngx_uint_t,
};
use ngx::core::NGX_CONF_ERROR;
use ngx::http::{HttpModule, HttpModuleLocationConf, HttpModuleMainConf, Merge, MergeConfigError};

#[cfg(test)]
extern crate nginx_testlib as _;

mod conf;
mod driver;
mod event;
mod guard;
mod http;
mod log;
mod resolve;
mod worker;

pub use guard::guard;

/// The module, as the traits of the `ngx` crate know it.
pub struct KafkaModule;

static MODULE_CTX: ngx_http_module_t = ngx_http_module_t {
    preconfiguration: Some(KafkaModule::preconfiguration),
    postconfiguration: Some(KafkaModule::postconfiguration),
    create_main_conf: Some(KafkaModule::create_main_conf),
    init_main_conf: None,
    create_srv_conf: None,
    merge_srv_conf: None,
    create_loc_conf: Some(KafkaModule::create_loc_conf),
    merge_loc_conf: Some(KafkaModule::merge_loc_conf),
};

#[cfg(feature = "export-modules")]
ngx::ngx_modules!(ngx_http_kafka_module);

#[used]
#[allow(non_upper_case_globals)]
#[cfg_attr(not(feature = "export-modules"), unsafe(no_mangle))]
pub static mut ngx_http_kafka_module: ngx_module_t = ngx_module_t {
    ctx: (&raw const MODULE_CTX).cast_mut().cast(),
    commands: (&raw mut conf::COMMANDS).cast::<ngx_command_t>(),
    type_: NGX_HTTP_MODULE as ngx_uint_t,
    init_process: Some(init_process),
    exit_process: Some(exit_process),
    ..ngx_module_t::default()
};

// SAFETY: `create_main_conf` below makes exactly this type.
unsafe impl HttpModuleMainConf for KafkaModule {
    type MainConf = conf::MainConf;
}

// SAFETY: `create_loc_conf` below makes exactly this type.
unsafe impl HttpModuleLocationConf for KafkaModule {
    type LocationConf = conf::LocationConf;
}

/// Demanded by the trait, unused: merging needs more than the two values.
impl Merge for conf::LocationConf {
    fn merge(&mut self, _outer: &Self) -> Result<(), MergeConfigError> {
        Ok(())
    }
}

impl HttpModule for KafkaModule {
    fn module() -> &'static ngx_module_t {
        // SAFETY: nginx writes to the structure while it loads modules only; the address is fixed.
        unsafe { &*ptr::addr_of!(ngx_http_kafka_module) }
    }

    unsafe extern "C" fn preconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
        guard::install_panic_hook();
        // SAFETY: nginx passes the configuration being read.
        let added = guard("preconfiguration", || conf::add_variables(unsafe { &mut *cf }));
        if added == Some(true) { NGX_OK as ngx_int_t } else { NGX_ERROR as ngx_int_t }
    }

    unsafe extern "C" fn postconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
        // SAFETY: nginx passes the configuration being read.
        let done = guard("postconfiguration", || resolve::configure(unsafe { &mut *cf }));
        if done.is_some() { NGX_OK as ngx_int_t } else { NGX_ERROR as ngx_int_t }
    }

    unsafe extern "C" fn merge_loc_conf(
        cf: *mut ngx_conf_t,
        outer: *mut c_void,
        inner: *mut c_void,
    ) -> *mut c_char {
        // SAFETY: nginx passes the configuration being read and two distinct structures that
        // `create_loc_conf` made.
        let (cf, outer, inner) = unsafe {
            (
                &mut *cf,
                &*outer.cast::<conf::LocationConf>(),
                &mut *inner.cast::<conf::LocationConf>(),
            )
        };
        match guard("merge_loc_conf", || conf::merge_location(cf, outer, inner)) {
            Some(true) => ngx::core::NGX_CONF_OK,
            _ => NGX_CONF_ERROR,
        }
    }
}

extern "C" fn init_process(cycle: *mut ngx_cycle_t) -> ngx_int_t {
    // SAFETY: nginx passes the worker's cycle.
    guard("init_process", || unsafe { worker::init(cycle) });
    NGX_OK as ngx_int_t
}

extern "C" fn exit_process(cycle: *mut ngx_cycle_t) {
    // SAFETY: as above.
    guard("exit_process", || unsafe { worker::exit(cycle) });
}
