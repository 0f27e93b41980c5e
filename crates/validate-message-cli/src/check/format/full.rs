//! For people: each violation with its source lines, in bodies and packets too.

use std::io::{stderr, stdin, stdout};

use annotate_snippets::{AnnotationKind, Group, Level as Title, Renderer, Snippet};
use message_schema::Level;
use message_schema::line::escaped;
use rustix::termios::tcgetwinsize;
use validate_message::{Source, Violation};

use super::source::Lines;
use crate::check::verdict::Verdict;

/// The width in columns if neither COLUMNS nor a terminal gives one.
const WIDTH: usize = 100;

/// The columns before a source line: its number and a bar.
const MARGIN: usize = 8;

/// The renderer, configured for its output.
pub(crate) struct Full {
    renderer: Renderer,
    is_coloured: bool,
    width: usize,
}

impl Full {
    /// Configures the renderer; the width is that of COLUMNS, or else of the terminal.
    pub(crate) fn new(is_coloured: bool, is_terminal: bool) -> Self {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        let of_terminal = || is_terminal.then(terminal_width).flatten();
        let width = columns.or_else(of_terminal);
        let renderer = if is_coloured {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        // Lines are cut to the width before the renderer gets them, so it need not cut them again.
        let renderer = renderer.term_width(usize::from(u16::MAX));
        Self {
            renderer,
            is_coloured,
            width: width.unwrap_or(WIDTH).saturating_sub(MARGIN).max(20),
        }
    }

    /// Returns a file's violations, each followed by an empty line.
    pub(crate) fn one(&self, verdict: &Verdict) -> String {
        if verdict.violations().is_empty() {
            return String::new();
        }
        let (message, packet) = (&verdict.texts.message, verdict.texts.packet.as_ref());
        let message = Lines::of(message);
        let packet = Lines::of(packet.map_or(&[], |(bytes, _)| bytes));
        let told = |violation: &Violation| match &violation.file {
            Source::Message => self.render(violation, &verdict.file, &message),
            Source::Packet(path) => self.render(violation, &escaped(path), &packet),
        };
        let reports: String = verdict.violations().iter().map(told).collect();
        reports + &super::cut::cut(verdict)
    }

    fn render(&self, violation: &Violation, file: &str, lines: &Lines<'_>) -> String {
        let level = match violation.level {
            Level::Error => Title::ERROR,
            Level::Warning => Title::WARNING,
        };
        let title = level
            .primary_title(escaped(&violation.message))
            .id(violation.code.as_str());
        let found = violation.found.as_deref();
        let excerpt = violation
            .place
            .and_then(|place| lines.excerpt(place, found, self.width));
        let mut margin = 0;
        let mut report = match excerpt {
            Some(excerpt) => {
                let last = excerpt.first + excerpt.text.matches('\n').count();
                margin = last.to_string().len();
                let parent = excerpt
                    .parent
                    .map(|span| AnnotationKind::Visible.span(span));
                let mark = AnnotationKind::Primary.span(excerpt.mark);
                let snippet = Snippet::source(excerpt.text).line_start(excerpt.first);
                title.element(snippet.annotations(parent.into_iter().chain([mark])))
            }
            None => Group::with_title(title),
        };
        if let Some(fix) = &violation.fix {
            let fix = fix.lines().map(escaped).collect::<Vec<String>>().join("\n");
            report = report.element(Title::HELP.message(fix));
        }
        let rendered = self.renderer.render(&[report]);
        // The renderer would count columns in the excerpt, in which lines are cut and characters escaped, so the place
        // in the file is written here.
        let (title, rest) = rendered.split_once('\n').unwrap_or((&rendered, ""));
        let place = violation
            .place
            .map(|place| format!(":{place}"))
            .unwrap_or_default();
        let arrow = if self.is_coloured {
            "\u{1b}[1m\u{1b}[94m-->\u{1b}[0m"
        } else {
            "-->"
        };
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!("{rest}\n")
        };
        format!("{title}\n{:margin$}{arrow} {file}{place}\n{rest}\n", "")
    }
}

/// Returns the width in columns of the terminal that one of the three standard streams is, if any.
fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(stdout())
        .or_else(|_| tcgetwinsize(stderr()))
        .or_else(|_| tcgetwinsize(stdin()))
        .ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
