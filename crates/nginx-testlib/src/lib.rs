//! Dev only: linking this crate links nginx's objects (see `build.rs`), so that the module's unit
//! tests can call real nginx functions such as `ngx_create_pool`.
#![no_std]
