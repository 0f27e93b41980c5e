//! Formats the log for people, programs or the journal: one line per event, whatever a name in it contains, and never
//! the subject or body of a message.

mod stderr;

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use chrono::SecondsFormat;
use message_schema::line::{escaped, escaped_in_json};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use workspace::clock;

use self::stderr::Log;

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people, with the time; in colour on a terminal.
    Text,
    /// A JSON object on each line.
    Json,
    /// For the journal: the priority first, and no time, because the journal adds it.
    Journald,
}

impl LogFormat {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
            LogFormat::Journald => "journald",
        }
    }
}

/// Starts logging to standard error in the given format or, if none is given, in the journal's format when the journal
/// reads standard error and as text otherwise. A second daemon in one process (a test) keeps the first one's log.
pub fn start(asked: Option<LogFormat>) {
    let form = asked.unwrap_or_else(|| {
        if is_journal() {
            LogFormat::Journald
        } else {
            LogFormat::Text
        }
    });
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_writer(move || Log::of(form))
        // A log that cannot be written, for example on a full disk, must not end the daemon.
        .log_internal_errors(false);
    let asked = std::env::var("SETTLED_LOG").unwrap_or_default();
    let filter = filter(&asked);
    let _ = match form {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            let subscriber = subscriber.with_ansi(is_terminal).with_target(false);
            let subscriber = subscriber.fmt_fields(text_fields());
            subscriber.finish().with(filter).try_init()
        }
        LogFormat::Json => {
            let subscriber = subscriber.event_format(Json);
            subscriber.finish().with(filter).try_init()
        }
        LogFormat::Journald => {
            let subscriber = subscriber.event_format(Journald);
            subscriber.finish().with(filter).try_init()
        }
    };
}

/// Formats the fields of a line for people as `tracing-subscriber` does, and escapes what could break out of the line.
/// Most fields are our own words, but a name that an agent chose can reach any of them, for example in an error.
fn text_fields() -> impl for<'w> FormatFields<'w> + 'static {
    let write = |to: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        let value = escaped(&format!("{value:?}"));
        match field.name() {
            "message" => to.write_str(&value),
            name if to.has_ansi_escapes() => {
                write!(to, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
            }
            name => write!(to, "{name}={value}"),
        }
    };
    debug_fn(write).delimited(" ")
}

/// Parses the log filter: a level, or levels of parts of the program. Empty or invalid text means `info`.
fn filter(asked: &str) -> Targets {
    let read = asked.parse::<Targets>().ok();
    read.filter(|_| !asked.is_empty())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}

/// Formats the line that says how many lines before it were lost.
pub fn lost(form: LogFormat, count: u64) -> String {
    let said = "lines of the log were lost: nobody read them";
    match form {
        LogFormat::Text => format!("{count} {said}\n"),
        LogFormat::Json => {
            let facts = [("message", said.into()), ("lost", count.into())];
            json(
                Level::WARN,
                facts.map(|(name, value): (&str, Value)| (name.to_owned(), value)),
            )
        }
        LogFormat::Journald => format!("<{}>{count} {said}\n", priority(Level::WARN)),
    }
}

/// True if `JOURNAL_STREAM` names standard error by device and inode; a pipe in its place does not match.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    // Compared as text, because the numbers have other types on other systems.
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

struct Json;

struct Journald;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        to.write_str(&json(*event.metadata().level(), Facts::of(event).0))
    }
}

impl<S, N> FormatEvent<S, N> for Journald
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = format!("<{}>", priority(*event.metadata().level()));
        let mut gap = "";
        for (name, value) in Facts::of(event).0 {
            match value.as_str() {
                Some(text) if name == "message" => write!(line, "{gap}{}", escaped(text))?,
                Some(text) if is_word(text) => write!(line, "{gap}{name}={text}")?,
                Some(_) | None => write!(line, "{gap}{name}={}", escaped(&value.to_string()))?,
            }
            gap = " ";
        }
        writeln!(to, "{line}")
    }
}

fn json(level: Level, facts: impl IntoIterator<Item = (String, Value)>) -> String {
    let mut line = Map::new();
    line.insert(
        "time".to_owned(),
        clock::now()
            .to_rfc3339_opts(SecondsFormat::Millis, true)
            .into(),
    );
    line.insert("level".to_owned(), level.as_str().to_lowercase().into());
    line.extend(facts);
    escaped_in_json(&Value::Object(line).to_string()) + "\n"
}

/// The syslog number of a level.
fn priority(level: Level) -> u8 {
    // `Level` is no enum, so it cannot be matched.
    match () {
        () if level == Level::ERROR => 3,
        () if level == Level::WARN => 4,
        () if level == Level::INFO => 6,
        () => 7,
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:@+,".contains(c))
}

/// The text of an event, its sentence first.
struct Facts(Vec<(String, Value)>);

impl Facts {
    fn of(event: &Event<'_>) -> Self {
        let mut facts = Self(Vec::new());
        event.record(&mut facts);
        facts.0.sort_by_key(|(name, _)| name != "message");
        facts
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.push((field.name().to_owned(), value.into()));
    }
}

impl Visit for Facts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;
    use std::sync::Arc;

    use message_schema::line::is_trap;
    use spool::FileName;

    use super::*;

    /// Returns what is logged meanwhile, in colour for a terminal.
    fn logged(is_coloured: bool, act: impl FnOnce()) -> String {
        let mut file = tempfile::tempfile().expect("a file");
        let subscriber = tracing_subscriber::fmt()
            .with_writer(Arc::new(file.try_clone().expect("a second handle")))
            .with_ansi(is_coloured)
            .fmt_fields(text_fields())
            .finish();
        tracing::subscriber::with_default(subscriber, act);
        file.rewind().expect("a file");
        std::io::read_to_string(file).expect("the log")
    }

    #[test]
    fn a_name_in_a_log_line_forges_no_line_and_controls_no_terminal() {
        let name = "a\n2026-11-27 INFO seq=7\u{1b}[2J\u{202e}lmay";
        let line = logged(false, || {
            tracing::warn!(error = %name, word = "x", count = 2, "cannot read {name}");
        });
        let shown = r"a\n2026-11-27 INFO seq=7\u{1b}[2J\u{202e}lmay";
        let fields = format!("cannot read {shown} error={shown} word=\"x\" count=2\n");
        assert!(line.ends_with(&fields), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");

        let line = json(Level::WARN, [("error".to_owned(), name.into())]);
        assert!(line.contains(r"\u001b[2J\u202elmay"), "{line}");
    }

    #[test]
    fn a_terminal_shows_the_names_of_fields_apart_from_their_values() {
        let line = logged(true, || tracing::info!(count = 2, "said"));
        let fields = "said \u{1b}[3mcount\u{1b}[0m\u{1b}[2m=\u{1b}[0m2\n";
        assert!(line.ends_with(fields), "{line:?}");
    }

    #[test]
    fn a_file_name_is_shown_without_any_trap() {
        for c in ('\u{1}'..=char::MAX).filter(|c| !matches!(c, '/' | '.' | '%')) {
            let name = FileName::new(c.to_string()).expect("a name");
            assert_eq!(name.to_string().starts_with('%'), is_trap(c), "{c:?}");
        }
    }

    #[test]
    fn a_level_or_levels_of_parts_are_logged_and_anything_else_is_info() {
        for (asked, target, level, is_logged) in [
            ("", "daemon", Level::INFO, true),
            ("", "daemon", Level::DEBUG, false),
            ("debug", "daemon", Level::DEBUG, true),
            ("error", "daemon", Level::WARN, false),
            ("settled=debug", "settled", Level::DEBUG, true),
            ("settled=debug", "daemon", Level::DEBUG, false),
            ("a=b=c", "daemon", Level::INFO, true),
            ("a=b=c", "daemon", Level::DEBUG, false),
        ] {
            let found = filter(asked).would_enable(target, &level);
            assert_eq!(found, is_logged, "{asked:?}: {level} of {target}");
        }
    }
}
