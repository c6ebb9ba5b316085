//! Which resolver a worker asks: that of the `http` block, else one of our own for the system's
//! name servers.

use core::ptr::{self, NonNull};
use std::fs;
use std::net::IpAddr;

use nginx_sys::{
    ngx_conf_t, ngx_cycle_t, ngx_http_conf_ctx_t, ngx_http_core_loc_conf_t, ngx_resolver_create,
    ngx_resolver_t, ngx_str_t,
};
use ngx::http::HttpModuleMainConf;

use crate::KafkaModule;

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// As in libc: more are ignored.
const MAX_SERVERS: usize = 3;
/// Seconds until the next name server is tried: several must fit into a look-up.
const RESEND_TIMEOUT: nginx_sys::time_t = 2;

/// Called when the `http` block has been read: nginx creates resolvers only then. A system without
/// usable name servers does not keep nginx from starting.
pub fn configure(cf: &mut ngx_conf_t) {
    // SAFETY: the `http` block's contexts, complete at this time.
    let http = unsafe { http_resolver(cf.ctx.cast()) };
    let Some(main) = KafkaModule::main_conf_mut(cf) else { return };
    if main.clusters.is_empty() || !http.is_null() {
        return;
    }
    let text = fs::read(RESOLV_CONF).unwrap_or_default();
    let servers = name_servers(&String::from_utf8_lossy(&text));
    if servers.is_empty() {
        return;
    }
    let texts: Vec<String> = servers
        .iter()
        .map(|ip| if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() })
        .collect();
    let mut names: Vec<ngx_str_t> = texts
        .iter()
        .map(|text| ngx_str_t { len: text.len(), data: text.as_ptr().cast_mut() })
        .collect();
    // SAFETY: the configuration is being read. nginx reads the names during the call, and keeps
    // pointers to their texts only for its log: so these go to the configuration's pool.
    let resolver = unsafe {
        for name in &mut names {
            name.data = nginx_sys::ngx_pstrdup(cf.pool, name);
            if name.data.is_null() {
                return;
            }
        }
        ngx_resolver_create(cf, names.as_mut_ptr(), names.len())
    };
    // SAFETY: nginx's own directives set these fields after creation too.
    if let Some(resolver) = unsafe { resolver.as_mut() } {
        resolver.resend_timeout = RESEND_TIMEOUT;
    }
    if let Some(main) = KafkaModule::main_conf_mut(cf) {
        main.resolver = NonNull::new(resolver);
    }
}

/// Null: there is none.
///
/// # Safety
/// `cycle` is the worker's.
pub unsafe fn resolver(cycle: *mut ngx_cycle_t) -> *mut ngx_resolver_t {
    // SAFETY: as the caller promises; the `http` block's contexts stand at the index of its module.
    unsafe {
        let http = *(*cycle).conf_ctx.add(nginx_sys::ngx_http_module.index);
        let configured = http_resolver(http.cast());
        if !configured.is_null() {
            return configured;
        }
        let main = KafkaModule::main_conf(&*cycle);
        main.and_then(|main| main.resolver).map_or(ptr::null_mut(), NonNull::as_ptr)
    }
}

/// The `resolver` of the `http` block; null also for the empty one that nginx makes where the
/// directive is missing.
///
/// # Safety
/// `ctx` is null or the contexts of the `http` block.
unsafe fn http_resolver(ctx: *const ngx_http_conf_ctx_t) -> *mut ngx_resolver_t {
    // SAFETY: as the caller promises; every context has a structure for the core module.
    unsafe {
        if ctx.is_null() {
            return ptr::null_mut();
        }
        let index = nginx_sys::ngx_http_core_module.ctx_index;
        let core: *const ngx_http_core_loc_conf_t = (*(*ctx).loc_conf.add(index)).cast();
        let resolver = (*core).resolver;
        if resolver.is_null() || (*resolver).connections.nelts == 0 {
            return ptr::null_mut();
        }
        resolver
    }
}

/// The `nameserver` lines; those that nginx cannot take (with a scope id) are left out.
fn name_servers(text: &str) -> Vec<IpAddr> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let keyword = words.next()?;
            let server = words.next()?;
            (keyword == "nameserver").then(|| server.parse().ok()).flatten()
        })
        .take(MAX_SERVERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_name_servers_of_resolv_conf() {
        let text = "# comment\nsearch example.org\nnameserver 10.0.0.1\n nameserver ::1 \n\
                    nameserver fe80::1%eth0\n;nameserver 10.0.0.2\nnameserver 10.0.0.3\n\
                    nameserver 10.0.0.4\n";
        let expected = ["10.0.0.1", "::1", "10.0.0.3"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(name_servers(text), expected);
        assert_eq!(name_servers(""), [] as [IpAddr; 0]);
    }
}
