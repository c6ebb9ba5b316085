//! The place of a directive in the configuration files.

use core::fmt;

use nginx_sys::{NGX_LOG_EMERG, NGX_LOG_WARN, ngx_conf_t};
use ngx::ngx_log_error;

/// Where a directive ends, as nginx reports it. Checks that need several directives run after all
/// of them were read, when nginx's own `ngx_conf_log_error` would name a closing brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub file: String,
    pub line: usize,
}

impl Position {
    /// The directive being read.
    pub fn current(cf: &ngx_conf_t) -> Self {
        // SAFETY: `conf_file` is null, or points to the file that nginx is reading; so does its
        // name.
        match unsafe { cf.conf_file.as_ref() } {
            Some(file) => Self {
                file: String::from_utf8_lossy(file.file.name.as_bytes()).into_owned(),
                line: file.line,
            },
            None => Self { file: "command line".into(), line: 0 },
        }
    }

    /// Logs `[emerg] MESSAGE in FILE:LINE`, the form of nginx's own configuration errors.
    pub fn emerg(&self, cf: &ngx_conf_t, message: impl fmt::Display) {
        ngx_log_error!(NGX_LOG_EMERG, cf.log, "{message} in {}:{}", self.file, self.line);
    }

    /// Logs `[warn] MESSAGE in FILE:LINE`.
    pub fn warn(&self, cf: &ngx_conf_t, message: impl fmt::Display) {
        ngx_log_error!(NGX_LOG_WARN, cf.log, "{message} in {}:{}", self.file, self.line);
    }
}
