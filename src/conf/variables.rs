//! The names of the `$kafka_*` variables; what they hold is [`crate::http::variables`]'s.

use nginx_sys::{NGX_HTTP_VAR_NOCACHEABLE, ngx_conf_t, ngx_http_add_variable, ngx_str_t};
use ngx::ngx_string;

/// The position is the `data` that the getter gets.
const NAMES: [ngx_str_t; 6] = [
    ngx_string!("kafka_topic"),
    ngx_string!("kafka_partition"),
    ngx_string!("kafka_offset"),
    ngx_string!("kafka_status"),
    ngx_string!("kafka_error"),
    ngx_string!("kafka_latency"),
];

/// `false`: nginx has logged what failed.
pub fn add_variables(cf: &mut ngx_conf_t) -> bool {
    NAMES.into_iter().enumerate().all(|(index, mut name)| {
        // They change while a request waits, so nginx must not keep them.
        // SAFETY: the configuration is being read; nginx copies the name.
        let variable = unsafe {
            ngx_http_add_variable(cf, &raw mut name, NGX_HTTP_VAR_NOCACHEABLE as usize).as_mut()
        };
        variable.is_some_and(|variable| {
            variable.get_handler = Some(crate::http::variables::get);
            variable.data = index;
            true
        })
    })
}
