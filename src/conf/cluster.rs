//! `kafka_cluster NAME { … }`: the block.

mod bootstrap;
mod checks;
mod directives;

use core::ffi::{c_char, c_void};
use core::ptr;

use nginx_sys::{ngx_command_t, ngx_conf_include, ngx_conf_parse, ngx_conf_t};
use ngx::core::{NGX_CONF_ERROR, NGX_CONF_OK};

use super::MainConf;
use super::args::{self, Invalid};
use super::position::Position;
use super::suggest::nearest;
use directives::DIRECTIVES;

/// One `kafka_cluster` block.
pub struct ClusterConf {
    pub name: String,
    /// Where the block begins.
    pub file: String,
    pub line: usize,
    pub producer: kafka::Config,
}

/// A block being read.
struct Block {
    name: String,
    position: Position,
    producer: kafka::Config,
    /// The directives so far, each with its place.
    seen: Vec<(&'static str, Position)>,
}

/// The directive that opens the block, and then all of its content.
pub fn kafka_cluster(cf: &mut ngx_conf_t, main: &mut MainConf) -> Result<(), Option<Invalid>> {
    let position = Position::current(cf);
    let [_, name] = args::words(cf) else {
        let usage = "use \"kafka_cluster NAME { … }\"";
        return Err(Some(format!(
            "invalid number of arguments in \"kafka_cluster\" directive, {usage}"
        )));
    };
    let name = args::utf8("kafka_cluster", name)?;
    if name.is_empty() || name.contains('$') {
        return Err(Some(args::invalid(
            "kafka_cluster",
            name,
            "a non-empty name without variables",
        )));
    }
    if let Some(first) = main.clusters.iter().find(|cluster| cluster.name == name) {
        return Err(Some(format!(
            "duplicate kafka_cluster \"{name}\", the first one is in {}:{}; \
             give this one another name",
            first.file, first.line
        )));
    }
    let mut block = Block {
        name: name.to_owned(),
        position,
        producer: kafka::Config::new(Vec::new()),
        seen: Vec::new(),
    };
    read(cf, &mut block)?;
    if let Err((position, message)) = block.check() {
        position.emerg(cf, message);
        return Err(None);
    }
    if let Some((position, message)) = block.warning() {
        position.warn(cf, message);
    }
    main.clusters.push(ClusterConf {
        name: block.name,
        file: block.position.file,
        line: block.position.line,
        producer: block.producer,
    });
    Ok(())
}

fn read(cf: &mut ngx_conf_t, block: &mut Block) -> Result<(), Option<Invalid>> {
    let outer = *cf;
    cf.handler = Some(block_directive);
    cf.handler_conf = (&raw mut *block).cast();
    // SAFETY: a null file name continues in the file being read; `block` outlives the call.
    let rc = unsafe { ngx_conf_parse(cf, ptr::null_mut()) };
    *cf = outer;
    // `ngx_conf_parse` has logged what was wrong.
    if rc == NGX_CONF_OK { Ok(()) } else { Err(None) }
}

/// nginx calls this for each directive inside the block.
unsafe extern "C" fn block_directive(
    cf: *mut ngx_conf_t,
    cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx passes the configuration being read, and `handler_conf` as `read` set it.
    let (conf_t, block) = unsafe { (&mut *cf, &mut *conf.cast::<Block>()) };
    if args::words(conf_t)[0].as_bytes() == b"include" {
        if args::words(conf_t).len() != 2 {
            Position::current(conf_t).emerg(conf_t, args::wrong_count("include", "FILE"));
            return NGX_CONF_ERROR;
        }
        // SAFETY: as nginx's own blocks (`types`, `map`) do; `cmd` is not used for a handler.
        return unsafe { ngx_conf_include(cf, cmd, conf) };
    }
    match crate::guard("kafka_cluster", || block.directive(conf_t)) {
        Some(Ok(())) => NGX_CONF_OK,
        Some(Err(message)) => {
            Position::current(conf_t).emerg(conf_t, message);
            NGX_CONF_ERROR
        }
        None => NGX_CONF_ERROR,
    }
}

impl Block {
    fn directive(&mut self, cf: &ngx_conf_t) -> Result<(), Invalid> {
        let words = args::words(cf);
        let name = args::utf8("kafka_cluster", &words[0])?;
        let Some(directive) = DIRECTIVES.iter().find(|directive| directive.name == name) else {
            return Err(unknown(name));
        };
        if self.place(directive.name).is_some() {
            return Err(format!("\"{name}\" directive is duplicate"));
        }
        let values = words[1..]
            .iter()
            .map(|word| args::utf8(name, word))
            .collect::<Result<Vec<&str>, _>>()?;
        if !directive.arguments.contains(&values.len()) {
            return Err(args::wrong_count(name, directive.usage));
        }
        (directive.apply)(&mut self.producer, directive.name, &values)?;
        self.seen.push((directive.name, Position::current(cf)));
        Ok(())
    }

    /// Where a directive stands in this block.
    fn place(&self, name: &str) -> Option<&Position> {
        self.seen.iter().find(|(seen, _)| *seen == name).map(|(_, position)| position)
    }
}

fn unknown(name: &str) -> Invalid {
    let known = || DIRECTIVES.iter().map(|directive| directive.name);
    match nearest(name, known()) {
        Some(near) => {
            format!("unknown directive \"{name}\" in kafka_cluster, did you mean \"{near}\"?")
        }
        None => format!(
            "unknown directive \"{name}\" in kafka_cluster, use one of: {}",
            known().collect::<Vec<_>>().join(", ")
        ),
    }
}
