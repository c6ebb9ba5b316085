//! `kafka_allowed_topics NAME | ~REGEX | ~*REGEX …`.

use core::{mem, ptr};

use nginx_sys::{
    NGX_MAX_CONF_ERRSTR, NGX_OK, ngx_conf_t, ngx_int_t, ngx_regex_compile, ngx_regex_compile_t,
    ngx_regex_exec, ngx_regex_t, ngx_str_t,
};

/// `NGX_REGEX_CASELESS`: the same bit with PCRE and PCRE2; before 1.21.5 a PCRE macro.
const CASELESS: usize = 1;

/// One argument of the directive.
#[derive(Clone)]
pub enum AllowedTopic {
    Name(String),
    Regex(Regex),
}

/// A regular expression in nginx's own engine, unanchored. Lives in the configuration's pool.
#[derive(Clone, Copy)]
pub struct Regex(*mut ngx_regex_t);

impl AllowedTopic {
    pub fn permits(&self, topic: &[u8]) -> bool {
        match self {
            Self::Name(name) => name.as_bytes() == topic,
            Self::Regex(regex) => regex.matches(topic),
        }
    }
}

impl Regex {
    /// `pattern` lies in the configuration's pool and is followed by NUL, as the arguments of a
    /// directive are: nginx keeps a pointer to it. The error is nginx's text: what is wrong, where.
    pub fn compile(
        cf: &mut ngx_conf_t,
        pattern: ngx_str_t,
        caseless: bool,
    ) -> Result<Self, String> {
        let mut message = [0u8; NGX_MAX_CONF_ERRSTR as usize];
        // SAFETY: a plain C structure, zeroed by nginx's own callers too.
        let mut rc = unsafe { mem::zeroed::<ngx_regex_compile_t>() };
        rc.pattern = pattern;
        rc.pool = cf.pool;
        rc.options = if caseless { CASELESS } else { 0 } as _;
        rc.err = ngx_str_t { len: message.len(), data: message.as_mut_ptr() };
        // SAFETY: all fields that `ngx_regex_compile` reads are set; the error buffer outlives the
        // call, the compiled expression goes to the configuration's pool.
        if unsafe { ngx_regex_compile(&raw mut rc) } != NGX_OK as ngx_int_t {
            return Err(String::from_utf8_lossy(rc.err.as_bytes()).into_owned());
        }
        Ok(Self(rc.regex))
    }

    fn matches(self, subject: &[u8]) -> bool {
        let mut subject = ngx_str_t { len: subject.len(), data: subject.as_ptr().cast_mut() };
        // SAFETY: the expression lives as long as the configuration; the subject is only read.
        // Negative answers are "no match" and errors of the engine: neither permits.
        unsafe { ngx_regex_exec(self.0, &raw mut subject, ptr::null_mut(), 0) >= 0 }
    }
}
