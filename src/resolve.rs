//! Host names of brokers: literal, hosts file, then DNS through nginx's own resolver. Nothing here
//! waits.

mod hosts;
mod system;

use core::cell::RefCell;
use core::ffi::CStr;
use core::slice;
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};

use kafka::{MILLISECOND, Micros, QueryId, SECOND};
use nginx_sys::{
    NGX_OK, ngx_cycle_t, ngx_int_t, ngx_msec_t, ngx_resolve_name, ngx_resolve_name_done,
    ngx_resolve_start, ngx_resolver_ctx_t, ngx_resolver_strerror, ngx_resolver_t, ngx_str_t,
};

use crate::event::sockaddr;
use crate::guard;
use hosts::HostsFile;
pub use system::configure;

/// For all attempts at one name, unless the records that wait for it have less.
const TIMEOUT: Micros = 5 * SECOND;
/// `NGX_NO_RESOLVER`, a macro with a cast: `resolver` is not configured.
const NO_RESOLVER: usize = usize::MAX;

/// Who asked.
pub trait Asker {
    /// May be called before [`Resolver::resolve`] returns, when nginx has the answer in its cache.
    fn resolved(&self, query: QueryId, result: Result<Vec<SocketAddr>, String>);
}

/// The look-ups of one worker.
pub struct Resolver {
    hosts: RefCell<HostsFile>,
    dns: *mut ngx_resolver_t,
    /// Those that wait for DNS.
    queries: RefCell<Vec<*mut Query>>,
}

struct Query {
    id: QueryId,
    port: u16,
    asker: Weak<dyn Asker>,
    resolver: Weak<Resolver>,
    ctx: *mut ngx_resolver_ctx_t,
    /// nginx writes to it (lower case), and reads it until the query ends.
    name: Vec<u8>,
}

impl Resolver {
    /// # Safety
    /// `cycle` is the worker's.
    pub unsafe fn new(cycle: *mut ngx_cycle_t) -> Self {
        Self {
            hosts: RefCell::new(HostsFile::system()),
            // SAFETY: as the caller promises.
            dns: unsafe { system::resolver(cycle) },
            queries: RefCell::new(Vec::new()),
        }
    }

    /// `Some`: answered already. `None`: the asker gets the answer.
    pub fn resolve(
        self: &Rc<Self>,
        id: QueryId,
        host: &str,
        port: u16,
        timeout: Micros,
        asker: Weak<dyn Asker>,
    ) -> Option<Result<Vec<SocketAddr>, String>> {
        let with_port = |ips: Vec<IpAddr>| {
            Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect::<Vec<_>>())
        };
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Some(with_port(vec![ip]));
        }
        let known = self.hosts.borrow_mut().find(host);
        if !known.is_empty() {
            return Some(with_port(known));
        }
        self.ask_dns(id, host, port, timeout, asker).err().map(Err)
    }

    fn ask_dns(
        self: &Rc<Self>,
        id: QueryId,
        host: &str,
        port: u16,
        timeout: Micros,
        asker: Weak<dyn Asker>,
    ) -> Result<(), String> {
        if self.dns.is_null() {
            return Err(no_resolver());
        }
        // SAFETY: the resolver lives as long as the cycle.
        let ctx = unsafe { ngx_resolve_start(self.dns, core::ptr::null_mut()) };
        if ctx.is_null() {
            return Err("out of memory".into());
        }
        if ctx as usize == NO_RESOLVER {
            return Err(no_resolver());
        }
        let resolver = Rc::downgrade(self);
        let name = host.as_bytes().to_vec();
        let query = Box::into_raw(Box::new(Query { id, port, asker, resolver, ctx, name }));
        self.queries.borrow_mut().push(query);
        // SAFETY: both are alive and ours; nginx calls the handler once, now or later, and never
        // after an error.
        let rc = unsafe {
            (*ctx).name = ngx_str_t { len: (*query).name.len(), data: (*query).name.as_mut_ptr() };
            (*ctx).handler = Some(on_answer);
            (*ctx).data = query.cast();
            (*ctx).timeout = (timeout.min(TIMEOUT) / MILLISECOND).max(1) as ngx_msec_t;
            // The records that wait for it keep the worker alive, not the look-up itself.
            (*ctx).set_cancelable(1);
            ngx_resolve_name(ctx)
        };
        if rc == NGX_OK as ngx_int_t {
            return Ok(());
        }
        // nginx has freed the context and not called the handler.
        self.forget(query);
        // SAFETY: made above, and nobody else has it any more.
        drop(unsafe { Box::from_raw(query) });
        Err("the name cannot be looked up".into())
    }

    fn forget(&self, query: *const Query) {
        self.queries.borrow_mut().retain(|other| !core::ptr::eq(*other, query));
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        for query in self.queries.take() {
            // SAFETY: those in the list have not been answered: their contexts are alive, and
            // nginx forgets them here.
            unsafe {
                let query = Box::from_raw(query);
                ngx_resolve_name_done(query.ctx);
            }
        }
    }
}

fn no_resolver() -> String {
    "no \"resolver\" is configured and the system has no name server".into()
}

unsafe extern "C" fn on_answer(ctx: *mut ngx_resolver_ctx_t) {
    guard("the resolver's answer", || {
        // SAFETY: `data` is the query that this context was made for; it is answered once.
        let query = unsafe { Box::from_raw((*ctx).data.cast::<Query>()) };
        if let Some(resolver) = query.resolver.upgrade() {
            resolver.forget(&raw const *query);
        }
        // SAFETY: nginx passes a finished context, alive until it is told to be done with it.
        let result = unsafe { addresses(ctx, query.port) };
        // SAFETY: as above; this is the one time.
        unsafe { ngx_resolve_name_done(ctx) };
        if let Some(asker) = query.asker.upgrade() {
            asker.resolved(query.id, result);
        }
    });
}

/// # Safety
/// `ctx` is a finished context.
unsafe fn addresses(ctx: *mut ngx_resolver_ctx_t, port: u16) -> Result<Vec<SocketAddr>, String> {
    // SAFETY: as the caller promises; with state 0, `addrs` has `naddrs` elements.
    unsafe {
        if (*ctx).state != 0 {
            let text = CStr::from_ptr(ngx_resolver_strerror((*ctx).state));
            return Err(format!("DNS: {}", text.to_string_lossy()));
        }
        if (*ctx).naddrs == 0 || (*ctx).addrs.is_null() {
            return Err("DNS: no address".into());
        }
        let addrs = slice::from_raw_parts((*ctx).addrs, (*ctx).naddrs);
        Ok(addrs
            .iter()
            .filter_map(|addr| sockaddr::ip(addr.sockaddr.cast(), addr.socklen as usize))
            .map(|ip| SocketAddr::new(ip, port))
            .collect())
    }
}
