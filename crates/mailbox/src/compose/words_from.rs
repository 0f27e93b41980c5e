//! Reports an error in a message at the caller's own place: a flag, or a line of its file.

use std::path::Path;

use message_schema::ReportedViolation;
use message_schema::line::escaped;

use super::response_file::ResponseFile;

/// The source of a message's content.
#[derive(Clone, Copy, Debug, Default)]
pub enum WordsFrom<'a> {
    /// Options of `send` or `reply`.
    #[default]
    Flags,
    /// Options of `feedback` or `lgtm`.
    Response,
    /// A file with the YAML of a body.
    Yaml(&'a Path),
    /// Options, and a file with the packet.
    Packet(&'a Path),
    /// Options of `feedback` or `lgtm`, and a file with findings.
    Findings {
        /// The file, `-` for standard input.
        file: &'a Path,
        /// Its text.
        text: &'a str,
    },
}

impl WordsFrom<'_> {
    /// Puts a violation in the caller's terms. `message` is the name of the message's file, `flags` the options of the
    /// caller's command, each after the field that it sets.
    pub fn translate(
        self,
        mut violation: ReportedViolation,
        message: &str,
        flags: &[(String, String)],
    ) -> ReportedViolation {
        let is_of_message = violation.file == message;
        let field = violation.field.clone().unwrap_or_default();
        match (self, is_of_message) {
            (Self::Flags | Self::Packet(_) | Self::Response | Self::Findings { .. }, true) => {
                let name = field.trim_start_matches("body.");
                let name = name.split('[').next().unwrap_or(name);
                let fix = violation.fix.as_deref();
                violation.fix = fix.map(|fix| with_flags(fix, flags));
                if let Some(flag) = flag(flags, name) {
                    violation.message = with_flag(&violation.message, name, &flag);
                    let fix = violation.fix.as_deref();
                    violation.fix = fix.map(|fix| with_flag(fix, name, &flag));
                    violation.file = flag;
                } else {
                    // The caller did not write this file.
                    violation.file.clear();
                }
                (violation.line, violation.column) = (None, None);
            }
            // The line and column are those in the message, not in the caller's file.
            (Self::Yaml(path), true) => {
                violation.file = shown(path);
                (violation.line, violation.column) = (None, None);
            }
            (Self::Packet(path), false) => violation.file = shown(path),
            (Self::Findings { file, text }, false) => {
                violation.file = shown(file);
                let place = place(&field, text);
                (violation.line, violation.column) = place.unzip();
            }
            (Self::Flags | Self::Response | Self::Yaml(_), false) => {}
        }
        violation
    }

    /// The place of a field in the caller's findings, as a prefix for an error.
    pub fn place_of(self, field: &str) -> String {
        match self {
            Self::Findings { file, text } => {
                let place = place(field, text)
                    .map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
                format!("{}{place}: ", escaped(&shown(file)))
            }
            Self::Flags | Self::Response | Self::Yaml(_) | Self::Packet(_) => String::new(),
        }
    }
}

/// Formats a violation on one line, and its fix on a second.
pub fn line(violation: &ReportedViolation) -> String {
    let place = violation
        .line
        .zip(violation.column)
        .map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
    let weight = match violation.level {
        message_schema::Level::Error => "",
        message_schema::Level::Warning => " (warning)",
    };
    let fix = violation
        .fix
        .as_ref()
        .map_or_else(String::new, |fix| format!("\n    fix: {}", escaped(fix)));
    let place = match violation.file.as_str() {
        "" => String::new(),
        file => format!("{}{place}: ", escaped(file)),
    };
    format!(
        "{place}{}{weight}: {}{fix}",
        violation.code,
        escaped(&violation.message)
    )
}

/// Names the options instead of the fields in a fix.
fn with_flags(fix: &str, flags: &[(String, String)]) -> String {
    flags.iter().fold(fix.to_owned(), |fix, (field, flag)| {
        fix.replace(&format!("`{field}: "), &format!("`{flag} "))
    })
}

/// Names the option instead of the field in a text.
fn with_flag(text: &str, field: &str, flag: &str) -> String {
    text.replace(&format!("`{field}`"), &format!("`{flag}`"))
        .replace("add `--", "give `--")
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The option that sets a field of a message.
fn flag(flags: &[(String, String)], field: &str) -> Option<String> {
    let field = match field {
        "related_pr" => "pr",
        field => field,
    };
    let found = flags.iter().find(|(set, _)| set == field);
    found.map(|(_, flag)| flag.clone())
}

/// The line and column of a field such as `findings[2].severity` in the caller's file.
fn place(field: &str, text: &str) -> Option<(u32, u32)> {
    let (index, rest) = field.strip_prefix("findings[")?.split_once(']')?;
    let places = ResponseFile::places(text);
    let item = places.get(index.parse::<usize>().ok()?)?;
    let value = item.field(rest.trim_start_matches('.'));
    let place = value.map_or(item.place, |field| field.value.place);
    Some(ResponseFile::own_place(text, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_in_the_callers_own_file() {
        let mapping = "findings:\n- severity: P1\n  title: a\n- {severity: P9, title: b}\n";
        assert_eq!(place("findings[1].severity", mapping), Some((4, 14)));
        assert_eq!(place("findings[1].file", mapping), Some((4, 3)));
        let list = "- severity: P1\n  title: a\n- severity: P9\n";
        assert_eq!(place("findings[1].severity", list), Some((3, 13)));
        assert_eq!(place("summary.P1", mapping), None);
    }

    fn flags() -> Vec<(String, String)> {
        let pairs = [
            ("pr", "--pr"),
            ("supersedes_message_id", "--supersedes-message-id"),
        ];
        pairs
            .map(|(field, flag)| (field.to_owned(), flag.to_owned()))
            .to_vec()
    }

    #[test]
    fn a_field_is_called_by_its_flag() {
        assert_eq!(flag(&flags(), "related_pr").as_deref(), Some("--pr"));
        assert_eq!(flag(&flags(), "frobnicate"), None);
    }

    #[test]
    fn a_fix_that_sets_another_field_names_its_flag() {
        let fix = "wait, or replace it with `supersedes_message_id: m-1`";
        assert_eq!(
            with_flags(fix, &flags()),
            "wait, or replace it with `--supersedes-message-id m-1`"
        );
    }

    fn violation(file: &str, field: Option<&str>) -> ReportedViolation {
        ReportedViolation {
            code: message_schema::Code::EnvelopeFieldMissing,
            message: "`related_pr` is missing".to_owned(),
            file: file.to_owned(),
            line: Some(9),
            column: Some(5),
            field: field.map(str::to_owned),
            thread: None,
            round_count: None,
            replies: None,
            clause: None,
            found: None,
            expected: None,
            fix: Some("add `related_pr: 86`".to_owned()),
            level: message_schema::Level::Error,
        }
    }

    #[test]
    fn a_violation_is_told_at_the_callers_own_place() {
        const FINDINGS: &str = "- severity: P1\n- severity: P9\n";
        let file = Path::new("f.yaml");
        let findings = WordsFrom::Findings {
            file,
            text: FINDINGS,
        };
        let standard = WordsFrom::Findings {
            file: Path::new("-"),
            text: FINDINGS,
        };
        let of_message = "`related_pr` is missing\n    fix: add `related_pr: 86`";
        let cases = [
            (WordsFrom::Flags, "m.yaml", "subject", of_message),
            (WordsFrom::Response, "m.yaml", "body.round", of_message),
            (WordsFrom::Flags, "p.yaml", "findings[1]", "p.yaml:9:5: "),
            (WordsFrom::Yaml(file), "m.yaml", "subject", "f.yaml: "),
            (
                WordsFrom::Yaml(file),
                "p.yaml",
                "findings[1]",
                "p.yaml:9:5: ",
            ),
            (
                WordsFrom::Packet(file),
                "p.yaml",
                "findings[1]",
                "f.yaml:9:5: ",
            ),
            (findings, "p.yaml", "findings[1].severity", "f.yaml:2:13: "),
            (findings, "p.yaml", "summary.P1", "f.yaml: "),
            (standard, "p.yaml", "findings[0]", "standard input:1:3: "),
        ];
        for (origin, file, field, place) in cases {
            let told = origin.translate(violation(file, Some(field)), "m.yaml", &[]);
            let place = if place == of_message { "" } else { place };
            let expected = format!("{place}envelope_field_missing: {of_message}");
            assert_eq!(line(&told), expected, "{origin:?} {file} {field}");
        }
    }

    #[test]
    fn a_field_of_the_message_is_told_as_the_option_that_sets_it() {
        let pr = [("pr".to_owned(), "--pr".to_owned())];
        let told =
            WordsFrom::Flags.translate(violation("m.yaml", Some("related_pr")), "m.yaml", &pr);
        assert_eq!(
            (told.file.as_str(), told.line, told.column),
            ("--pr", None, None)
        );
        let to = [("to".to_owned(), "--to".to_owned())];
        let mut unnamed = violation("m.yaml", Some("body.to[1]"));
        unnamed.message = "`to` is missing".to_owned();
        unnamed.fix = Some("add `to: codex`".to_owned());
        unnamed.level = message_schema::Level::Warning;
        let told = WordsFrom::Flags.translate(unnamed, "m.yaml", &to);
        let expected =
            "--to: envelope_field_missing (warning): `--to` is missing\n    fix: give `--to codex`";
        assert_eq!(line(&told), expected);
    }

    #[test]
    fn only_a_file_of_findings_has_places_for_them() {
        let (file, text) = (Path::new("f.yaml"), "- severity: P1\n");
        let findings = WordsFrom::Findings { file, text };
        assert_eq!(findings.place_of("findings[0]"), "f.yaml:1:3: ");
        assert_eq!(findings.place_of("findings[7]"), "f.yaml: ");
        for origin in [
            WordsFrom::Flags,
            WordsFrom::Response,
            WordsFrom::Packet(file),
        ] {
            assert_eq!(origin.place_of("findings[0]"), "");
        }
    }
}
