//! How each `kafka_*` directive of a location is written, and where its value goes.

use nginx_sys::{ngx_conf_t, ngx_str_t};
use ngx::http::{HttpModuleLocationConf, NgxHttpCoreModule};

use super::allowed_topics::{AllowedTopic, Regex};
use super::args::{Invalid, choice, flag, invalid, number, utf8, words, wrong_count};
use super::complex_value::ComplexValue;
use super::location::{EmptyBody, HeaderConf, LocationConf, Pass, TopicConf, ValueSource};
use super::merge::{HANDLER, MEANINGLESS_EMPTY_BODY, SECOND_HANDLER};
use super::methods::Methods;
use super::position::Position;

/// A directive that could not be taken; `None` where nginx has logged the reason itself.
pub type Refusal = Option<Invalid>;

/// One directive being read.
struct Directive<'a> {
    cf: &'a mut ngx_conf_t,
    name: &'static str,
    arguments: &'static [ngx_str_t],
    position: Position,
}

/// Takes the directive that nginx has just read.
pub fn apply(cf: &mut ngx_conf_t, location: &mut LocationConf) -> Result<(), Refusal> {
    let [name, arguments @ ..] = words(cf) else { return Err(None) };
    let name = utf8("kafka", name)?;
    let position = Position::current(cf);
    let mut directive = Directive { cf, name, arguments, position };
    let set = &mut location.set;
    match name {
        "kafka_pass" => kafka_pass(&mut directive, location),
        "kafka_methods" => directive
            .fill(&mut set.methods, |one| Ok(Methods::parse(one.name, &one.many("METHOD …")?)?)),
        "kafka_topic" => directive.fill(&mut set.topic, kafka_topic),
        "kafka_allowed_topics" => directive.fill(&mut set.allowed_topics, kafka_allowed_topics),
        "kafka_key" => directive.fill(&mut set.key, |one| one.complex("VALUE")),
        "kafka_partition" => directive.fill(&mut set.partition, |one| {
            one.checked_complex("VALUE", |text| {
                convert::partition::parse(text).map(drop).map_err(|error| error.to_string())
            })
        }),
        "kafka_timestamp" => directive.fill(&mut set.timestamp, |one| {
            one.checked_complex("VALUE", |text| {
                convert::timestamp::parse(text).map(drop).map_err(|error| error.to_string())
            })
        }),
        "kafka_value" => {
            let other = set.empty_body.is_some();
            directive.fill(&mut set.value, |one| kafka_value(one, other))
        }
        "kafka_empty_body" => {
            let tombstone = set.value == Some(ValueSource::None);
            directive.fill(&mut set.empty_body, |one| kafka_empty_body(one, tombstone))
        }
        "kafka_header" => {
            let header = kafka_header(&mut directive)?;
            set.headers.get_or_insert_default().push(header);
            Ok(())
        }
        "kafka_async" => directive.fill(&mut set.async_, |one| one.flag()),
        "kafka_error_detail" => directive.fill(&mut set.error_detail, |one| one.flag()),
        "kafka_ignore_client_abort" => {
            directive.fill(&mut set.ignore_client_abort, |one| one.flag())
        }
        "kafka_success_status" => directive.fill(&mut set.success_status, |one| {
            let text = one.one("CODE")?;
            match number(one.name, text, 200, 299)? {
                // Reset Content has none, Partial Content needs a range.
                205 | 206 => {
                    let expected = "a whole number from 200 to 299, but not 205 or 206";
                    Err(invalid(one.name, text, expected).into())
                }
                status => Ok(status as u16),
            }
        }),
        _ => Err(Some(format!("unknown directive \"{name}\""))),
    }
}

impl Directive<'_> {
    /// Parses into an empty slot; a full one means that the directive stands here twice.
    fn fill<T>(
        &mut self,
        slot: &mut Option<T>,
        parse: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<(), Refusal> {
        if slot.is_some() {
            return Err(Some(format!("\"{}\" directive is duplicate", self.name)));
        }
        *slot = Some(parse(self)?);
        Ok(())
    }

    fn one(&self, usage: &str) -> Result<&'static str, Invalid> {
        match self.arguments {
            [argument] => utf8(self.name, argument),
            _ => Err(wrong_count(self.name, usage)),
        }
    }

    fn many(&self, usage: &str) -> Result<Vec<&'static str>, Invalid> {
        match self.arguments {
            [] => Err(wrong_count(self.name, usage)),
            arguments => arguments.iter().map(|argument| utf8(self.name, argument)).collect(),
        }
    }

    fn flag(&self) -> Result<bool, Refusal> {
        Ok(flag(self.name, self.one("on | off")?)?)
    }

    fn complex(&mut self, usage: &str) -> Result<ComplexValue, Refusal> {
        match self.arguments {
            [argument] => ComplexValue::compile(self.cf, argument).ok_or(None),
            _ => Err(Some(wrong_count(self.name, usage))),
        }
    }

    /// A complex value that is checked here and now where it holds no variable.
    fn checked_complex(
        &mut self,
        usage: &str,
        check: impl FnOnce(&[u8]) -> Result<(), String>,
    ) -> Result<ComplexValue, Refusal> {
        let value = self.complex(usage)?;
        if let Some(text) = value.constant() {
            check(text).map_err(|reason| {
                let shown = String::from_utf8_lossy(text);
                format!("invalid value \"{shown}\" in \"{}\" directive: {reason}", self.name)
            })?;
        }
        Ok(value)
    }
}

fn kafka_pass(directive: &mut Directive, location: &mut LocationConf) -> Result<(), Refusal> {
    if location.pass.is_some() {
        return Err(Some("\"kafka_pass\" directive is duplicate".into()));
    }
    let cluster = directive.one("CLUSTER")?;
    if cluster.contains('$') {
        return Err(Some(invalid(
            "kafka_pass",
            cluster,
            "the name of a kafka_cluster, without variables",
        )));
    }
    let core = NgxHttpCoreModule::location_conf_mut(directive.cf).ok_or(None)?;
    if core.handler.is_some() {
        return Err(Some(SECOND_HANDLER.into()));
    }
    core.handler = Some(HANDLER);
    location.pass =
        Some(Pass { cluster: cluster.to_owned(), position: directive.position.clone() });
    Ok(())
}

fn kafka_topic(directive: &mut Directive) -> Result<TopicConf, Refusal> {
    let value = directive.complex("VALUE")?;
    let constant = match value.constant() {
        None => None,
        Some(text) => {
            let names = convert::topic::parse_list(text).map_err(|error| {
                let shown = String::from_utf8_lossy(text);
                format!("invalid value \"{shown}\" in \"kafka_topic\" directive: {error}")
            })?;
            Some(names.into_iter().map(str::to_owned).collect())
        }
    };
    Ok(TopicConf { value, constant, position: directive.position.clone() })
}

fn kafka_allowed_topics(directive: &mut Directive) -> Result<Vec<AllowedTopic>, Refusal> {
    let words = directive.many("NAME | ~REGEX | ~*REGEX …")?;
    let mut allowed = Vec::with_capacity(words.len());
    for (word, argument) in words.into_iter().zip(directive.arguments) {
        let Some(pattern) = word.strip_prefix('~') else {
            convert::topic::check_name(word.as_bytes()).map_err(|error| {
                format!(
                    "invalid value \"{word}\" in \"kafka_allowed_topics\" directive: {error}; \
                     a regular expression begins with \"~\""
                )
            })?;
            allowed.push(AllowedTopic::Name(word.to_owned()));
            continue;
        };
        let caseless = pattern.starts_with('*');
        let skip = if caseless { 2 } else { 1 };
        if argument.len == skip {
            return Err(Some(format!(
                "empty regular expression \"{word}\" in \"kafka_allowed_topics\" directive, \
                 write \"~.\" to allow every topic"
            )));
        }
        // The tail of the argument is still followed by its NUL.
        let tail = ngx_str_t {
            len: argument.len - skip,
            // SAFETY: the argument is longer than `skip`.
            data: unsafe { argument.data.add(skip) },
        };
        let regex = Regex::compile(directive.cf, tail, caseless).map_err(|reason| {
            format!("invalid value \"{word}\" in \"kafka_allowed_topics\" directive: {reason}")
        })?;
        allowed.push(AllowedTopic::Regex(regex));
    }
    Ok(allowed)
}

fn kafka_value(directive: &mut Directive, empty_body: bool) -> Result<ValueSource, Refusal> {
    let words = directive.many("body | none")?;
    let source = match words[0] {
        word if word == "envelope" || word.starts_with("format=") => {
            return Err(Some(format!(
                "\"{word}\" in \"kafka_value\" directive is not supported in this version, \
                 write \"body\" or \"none\""
            )));
        }
        word => choice(
            directive.name,
            word,
            &[("body", ValueSource::Body), ("none", ValueSource::None)],
        )?,
    };
    if words.len() > 1 {
        return Err(Some(wrong_count(directive.name, "body | none")));
    }
    if source == ValueSource::None && empty_body {
        return Err(Some(
            "\"kafka_value none\" makes \"kafka_empty_body\" meaningless, remove one of them"
                .into(),
        ));
    }
    Ok(source)
}

fn kafka_empty_body(
    directive: &mut Directive,
    tombstone: bool,
) -> Result<(EmptyBody, Position), Refusal> {
    let choices =
        [("value", EmptyBody::Value), ("null", EmptyBody::Null), ("reject", EmptyBody::Reject)];
    let body = choice(directive.name, directive.one("value | null | reject")?, &choices)?;
    if tombstone {
        return Err(Some(MEANINGLESS_EMPTY_BODY.into()));
    }
    Ok((body, directive.position.clone()))
}

fn kafka_header(directive: &mut Directive) -> Result<HeaderConf, Refusal> {
    let [name, value] = directive.arguments else {
        return Err(Some(wrong_count("kafka_header", "NAME VALUE")));
    };
    // Keys of record headers are strings (KIP-82).
    let text = utf8("kafka_header", name)?;
    if text.is_empty() || text.contains('$') {
        return Err(Some(invalid(
            "kafka_header",
            text,
            "the name of a record header, without variables",
        )));
    }
    let value = ComplexValue::compile(directive.cf, value).ok_or(None)?;
    Ok(HeaderConf { name: text.as_bytes().to_vec(), value })
}
