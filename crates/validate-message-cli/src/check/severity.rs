//! `validate-message.toml`: the weights of violations in the printed output, by file. The daemon reads only
//! `settled.toml`: no severity here admits what it refuses.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use message_schema::{Code, Level};
use serde::Deserialize;
use toml::Spanned;
use validate_message::{Violation, nearest};

use super::subject::Subject;

/// The file's name.
const FILE: &str = "validate-message.toml";

/// The contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeverityFile {
    #[serde(default)]
    severity: BTreeMap<Spanned<String>, Weight>,
    #[serde(default)]
    path: Vec<PathSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSection {
    glob: Spanned<String>,
    severity: BTreeMap<Spanned<String>, Weight>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Weight {
    Error,
    Warning,
    Off,
}

/// One table of the file: the weights for some files.
struct Table {
    /// `None` for all files.
    glob: Option<GlobMatcher>,
    /// The weight of each code or, with a final `*`, of each code with that prefix.
    weights: BTreeMap<String, Weight>,
}

/// A parsed configuration file.
struct Config {
    /// The directory that its globs start from.
    directory: PathBuf,
    /// The later table wins.
    tables: Vec<Table>,
}

/// The weights for every file that is checked.
#[derive(Default)]
pub(crate) struct Severities {
    configs: Vec<Config>,
    /// The index of the config that applies in each directory.
    by_directory: HashMap<PathBuf, Option<usize>>,
}

impl Severities {
    /// Reads one given file for all subjects. The error is a text for people.
    pub(crate) fn of_file(file: &Path, subjects: &[Subject]) -> Result<Self, String> {
        let configs = vec![Config::read(file)?];
        let by_directory = subjects
            .iter()
            .map(|subject| (directory_of(subject).to_owned(), Some(0)))
            .collect();
        Ok(Self {
            configs,
            by_directory,
        })
    }

    /// Reads the nearest file above each subject. The error is a text for people.
    pub(crate) fn nearest(subjects: &[Subject]) -> Result<Self, String> {
        let mut found = Self::default();
        // Files of one directory mostly come together.
        let mut directories: Vec<&Path> = subjects.iter().map(directory_of).collect();
        directories.dedup();
        for directory in directories {
            if !found.by_directory.contains_key(directory) {
                found.look_above(directory)?;
            }
        }
        Ok(found)
    }

    fn look_above(&mut self, directory: &Path) -> Result<(), String> {
        let absolute = super::place::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let mut config = None;
        for above in absolute.ancestors() {
            if let Some(known) = self
                .configs
                .iter()
                .position(|config| config.directory == above)
            {
                config = Some(known);
                break;
            }
            let file = above.join(FILE);
            if file.is_file() {
                self.configs.push(Config::read(&file)?);
                config = Some(self.configs.len() - 1);
                break;
            }
        }
        self.by_directory.insert(directory.to_owned(), config);
        Ok(())
    }

    /// Gives each violation its weight in the subject's file, and removes those that are off.
    pub(crate) fn weigh(&self, subject: &Subject, violations: &mut Vec<Violation>) {
        if self.configs.is_empty() || violations.is_empty() {
            return;
        }
        let Some(config) = self
            .by_directory
            .get(directory_of(subject))
            .copied()
            .flatten()
        else {
            return;
        };
        let config = &self.configs[config];
        let place = subject
            .place()
            .and_then(|place| super::place::absolute(place).ok());
        let place = place
            .as_deref()
            .and_then(|place| place.strip_prefix(&config.directory).ok());
        let tables: Vec<&Table> = config
            .tables
            .iter()
            .filter(|table| table.holds_for(place))
            .collect();
        violations.retain_mut(|violation| {
            match tables
                .iter()
                .rev()
                .find_map(|table| table.weight(violation.code))
            {
                Some(Weight::Off) => return false,
                Some(Weight::Error) => violation.level = Level::Error,
                Some(Weight::Warning) => violation.level = Level::Warning,
                None => {}
            }
            true
        });
    }
}

fn directory_of(subject: &Subject) -> &Path {
    subject
        .place()
        .and_then(Path::parent)
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

impl Config {
    fn read(file: &Path) -> Result<Self, String> {
        let shown = message_schema::line::escaped(&file.to_string_lossy());
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{shown}: cannot be read: {error}"))?;
        let absolute = super::place::absolute(file).map_err(|error| format!("{shown}: {error}"))?;
        let directory = absolute.parent().unwrap_or(Path::new("")).to_owned();
        let tables = tables(&text)
            .map_err(|(at, why)| format!("{shown}:{}: {why}", line_and_column(&text, at)))?;
        Ok(Self { directory, tables })
    }
}

/// Parses the file's text; the error holds a byte offset and a sentence.
fn tables(text: &str) -> Result<Vec<Table>, (usize, String)> {
    let written: SeverityFile = toml::from_str(text).map_err(|error| {
        (
            error.span().map_or(0, |span| span.start),
            error.message().trim().replace('\n', ", "),
        )
    })?;
    let mut tables = vec![Table {
        glob: None,
        weights: weights(written.severity)?,
    }];
    for path in written.path {
        let at = path.glob.span().start;
        let glob = GlobBuilder::new(path.glob.get_ref())
            .literal_separator(true)
            .build();
        let glob = glob
            .map_err(|error| (at, error.to_string()))?
            .compile_matcher();
        tables.push(Table {
            glob: Some(glob),
            weights: weights(path.severity)?,
        });
    }
    Ok(tables)
}

fn weights(
    written: BTreeMap<Spanned<String>, Weight>,
) -> Result<BTreeMap<String, Weight>, (usize, String)> {
    let weight = |(key, weight): (Spanned<String>, Weight)| {
        let at = key.span().start;
        let key = key.into_inner();
        let is_known = match key.strip_suffix('*') {
            Some(start) => Code::ALL
                .iter()
                .any(|code| code.as_str().starts_with(start)),
            None => Code::ALL.iter().any(|code| code.as_str() == key),
        };
        if is_known {
            return Ok((key, weight));
        }
        let near = nearest(&key, Code::ALL.iter().map(|code| code.as_str()));
        let near = near
            .map(|near| format!(", did you mean `{near}`?"))
            .unwrap_or_default();
        Err((
            at,
            format!(
                "`{}` is not a code or the start of one{near}",
                message_schema::line::escaped(&key)
            ),
        ))
    };
    written.into_iter().map(weight).collect()
}

fn line_and_column(text: &str, at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |feed| feed + 1);
    format!(
        "{}:{}",
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1
    )
}

impl Table {
    fn holds_for(&self, place: Option<&Path>) -> bool {
        self.glob
            .as_ref()
            .is_none_or(|glob| place.is_some_and(|place| glob.is_match(place)))
    }

    /// Returns the weight of a code: its own before that of a prefix, a longer prefix before a shorter one.
    fn weight(&self, code: Code) -> Option<Weight> {
        let own = self.weights.get(code.as_str());
        let begins = |(key, _): &(&String, &Weight)| {
            key.strip_suffix('*')
                .is_some_and(|start| code.as_str().starts_with(start))
        };
        let longest = || {
            self.weights
                .iter()
                .filter(begins)
                .max_by_key(|(key, _)| key.len())
                .map(|(_, weight)| weight)
        };
        own.or_else(longest).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_weight_of_a_code_comes_before_that_of_its_beginning() {
        let text =
            "[severity]\n\"*\" = \"off\"\n\"body_*\" = \"warning\"\nbody_syntax = \"error\"\n";
        let tables = tables(text).map_err(|(_, why)| why).expect("it is right");
        assert_eq!(tables[0].weight(Code::BodySyntax), Some(Weight::Error));
        assert_eq!(
            tables[0].weight(Code::BodyFieldInvalid),
            Some(Weight::Warning)
        );
        assert_eq!(tables[0].weight(Code::Empty), Some(Weight::Off));
    }

    #[test]
    fn what_nobody_knows_is_told_with_its_place() {
        let wrong = |text: &str| {
            tables(text)
                .map(|_| ())
                .map_err(|(at, why)| format!("{}: {why}", line_and_column(text, at)))
        };
        let told = |text: &str| wrong(text).expect_err("it is wrong");
        assert_eq!(
            told("[severity]\n\nbody_syntaxx = \"off\"\n"),
            "3:1: `body_syntaxx` is not a code or the start of one, did you mean `body_syntax`?"
        );
        assert!(
            told("[severity]\nempty = \"info\"\n").starts_with("2:9: unknown variant `info`"),
            "{}",
            told("[severity]\nempty = \"info\"\n")
        );
        assert!(
            told("x = 1\n").starts_with("1:1: unknown field `x`"),
            "{}",
            told("x = 1\n")
        );
        assert!(
            told("[[path]]\nglob = \"[\"\nseverity = {}\n").starts_with("2:8: error parsing glob")
        );
        assert!(
            told("[severity\n").starts_with("1:"),
            "{}",
            told("[severity\n")
        );
    }
}
