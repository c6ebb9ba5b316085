//! The table of directives that nginx reads, and the C functions behind it.

use core::ffi::{c_char, c_void};
use core::ptr;

use nginx_sys::{
    NGX_CONF_ANY, NGX_CONF_BLOCK, NGX_HTTP_LIF_CONF, NGX_HTTP_LOC_CONF, NGX_HTTP_LOC_CONF_OFFSET,
    NGX_HTTP_MAIN_CONF, NGX_HTTP_MAIN_CONF_OFFSET, NGX_HTTP_SRV_CONF, ngx_command_t, ngx_conf_t,
    ngx_str_t, ngx_uint_t,
};
use ngx::core::{NGX_CONF_ERROR, NGX_CONF_OK};
use ngx::ngx_string;

use super::location_directives::{self, Refusal};
use super::position::Position;
use super::{LocationConf, MainConf, cluster};

/// Content handlers stand in locations only.
const LOCATION: u32 = NGX_HTTP_LOC_CONF | NGX_HTTP_LIF_CONF;
/// Where settings stand: not in `if`, which only chooses between content handlers.
const EVERYWHERE: u32 = NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF;

/// Arguments are counted by our own code, whose messages say what to write.
const fn location(name: ngx_str_t, contexts: u32) -> ngx_command_t {
    ngx_command_t {
        name,
        type_: (contexts | NGX_CONF_ANY) as ngx_uint_t,
        set: Some(location_directive),
        conf: NGX_HTTP_LOC_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    }
}

pub static mut COMMANDS: [ngx_command_t; 16] = [
    ngx_command_t {
        name: ngx_string!("kafka_cluster"),
        type_: (NGX_HTTP_MAIN_CONF | NGX_CONF_BLOCK | NGX_CONF_ANY) as ngx_uint_t,
        set: Some(cluster_block),
        conf: NGX_HTTP_MAIN_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    },
    location(ngx_string!("kafka_pass"), LOCATION),
    location(ngx_string!("kafka_methods"), EVERYWHERE),
    location(ngx_string!("kafka_topic"), EVERYWHERE),
    location(ngx_string!("kafka_allowed_topics"), EVERYWHERE),
    location(ngx_string!("kafka_key"), EVERYWHERE),
    location(ngx_string!("kafka_partition"), EVERYWHERE),
    location(ngx_string!("kafka_timestamp"), EVERYWHERE),
    location(ngx_string!("kafka_value"), EVERYWHERE),
    location(ngx_string!("kafka_empty_body"), EVERYWHERE),
    location(ngx_string!("kafka_header"), EVERYWHERE),
    location(ngx_string!("kafka_async"), EVERYWHERE),
    location(ngx_string!("kafka_error_detail"), EVERYWHERE),
    location(ngx_string!("kafka_success_status"), EVERYWHERE),
    location(ngx_string!("kafka_ignore_client_abort"), EVERYWHERE),
    ngx_command_t::empty(),
];

unsafe extern "C" fn cluster_block(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx passes the configuration being read, and the structure that
    // `NGX_HTTP_MAIN_CONF_OFFSET` asks for.
    let (cf, main) = unsafe { (&mut *cf, &mut *conf.cast::<MainConf>()) };
    let outcome = crate::guard("kafka_cluster", || cluster::kafka_cluster(cf, main));
    answer(cf, outcome)
}

unsafe extern "C" fn location_directive(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx passes the configuration being read, and the structure that
    // `NGX_HTTP_LOC_CONF_OFFSET` asks for.
    let (cf, location) = unsafe { (&mut *cf, &mut *conf.cast::<LocationConf>()) };
    let outcome = crate::guard("directive", || location_directives::apply(cf, location));
    answer(cf, outcome)
}

fn answer(cf: &ngx_conf_t, outcome: Option<Result<(), Refusal>>) -> *mut c_char {
    match outcome {
        Some(Ok(())) => NGX_CONF_OK,
        Some(Err(Some(message))) => {
            Position::current(cf).emerg(cf, message);
            NGX_CONF_ERROR
        }
        // Logged already.
        Some(Err(None)) | None => NGX_CONF_ERROR,
    }
}
