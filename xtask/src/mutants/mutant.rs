//! One mutant: the changes to files, and the tests that should notice. A mutant is a small text in `tests/mutants/`; it
//! finds its place by the surrounding words rather than line numbers, so that it survives changes elsewhere in the
//! file.

use std::path::{Path, PathBuf};

/// A way to break the code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// Its file's name without the extension.
    pub(crate) name: String,
    /// The fault it causes, in a sentence.
    pub(crate) what: String,
    /// The tests that should notice it, the cheapest first.
    pub(crate) tests: Vec<String>,
    /// The changes to the source.
    pub(crate) changes: Vec<Change>,
}

/// One place in one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The file, relative to the root of the repository.
    pub(crate) file: PathBuf,
    old: String,
    new: String,
}

impl Mutant {
    /// Reads a mutant: a sentence, `tests: …`, then for each change `==== FILE`, the old text, `----`
    /// and the new text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = text.split("==== ");
        let head = parts.next().unwrap_or_default();
        let (what, tests) = head
            .split_once("\ntests: ")
            .ok_or("expected a sentence and `tests: …`")?;
        let changes = parts.map(Change::parse).collect::<Result<Vec<_>, _>>()?;
        if changes.is_empty() || tests.trim().is_empty() {
            return Err("expected tests and at least one `==== FILE`".to_owned());
        }
        let tests = tests.split_whitespace().map(str::to_owned).collect();
        Ok(Self {
            name: name.to_owned(),
            what: what.trim().to_owned(),
            tests,
            changes,
        })
    }

    /// Returns every mutant of the repository, by name.
    pub(crate) fn all(root: &Path) -> Result<Vec<Self>, String> {
        let directory = root.join("tests/mutants");
        let entries = std::fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut paths: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        let read = |path: &PathBuf| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            Self::parse(&name, &text).map_err(|error| format!("{name}: {error}"))
        };
        paths.iter().map(read).collect()
    }
}

impl Change {
    fn parse(part: &str) -> Result<Self, String> {
        let (file, texts) = part
            .split_once('\n')
            .ok_or("expected a file's name after `====`")?;
        let (old, new) = texts
            .split_once("----\n")
            .ok_or("expected `----` between old and new text")?;
        Ok(Self {
            file: PathBuf::from(file.trim()),
            old: old.to_owned(),
            new: new.to_owned(),
        })
    }

    /// Returns the file's text with the change; the old text must occur exactly once.
    pub(crate) fn made_in(&self, text: &str) -> Result<String, String> {
        // Changes are written as whole lines, but a place may begin or end within one.
        let old = self.old.strip_suffix('\n').unwrap_or(&self.old);
        let new = self.new.strip_suffix('\n').unwrap_or(&self.new);
        match text.matches(old).count() {
            1 => Ok(text.replacen(old, new, 1)),
            found => Err(format!(
                "the old text is found {found} times in {}",
                self.file.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::suite;

    #[test]
    fn every_mutant_still_applies_and_names_tests_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = Mutant::all(&root).expect("the mutants can be read");
        assert!(mutants.len() >= 20, "only {} mutants", mutants.len());
        for mutant in mutants {
            for change in &mutant.changes {
                let text = std::fs::read_to_string(root.join(&change.file)).expect("a source file");
                let changed = change
                    .made_in(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", mutant.name));
                assert_ne!(changed, text, "{} changes nothing", mutant.name);
            }
            assert!(
                mutant.tests.iter().all(|test| suite(test).is_some()),
                "{}: {:?}",
                mutant.name,
                mutant.tests
            );
        }
    }

    /// Rows of the page that name the room alone; whoever runs one of these again adds its test.
    const WITHOUT_A_TEST: [&str; 10] = [
        "accepted-by-any-head",
        "kept-head-unread",
        "near-miss-untold",
        "pair-and-nobody-answers",
        "pair-of-all-reviews",
        "removed-from-under",
        "rewritten-and-served",
        "takes-all-mail",
        "told-without-end",
        "unchecked-in-silence",
    ];

    #[test]
    fn the_page_has_every_mutant_with_its_fault_and_a_test_that_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(root.join("docs/mutants.md")).expect("the page");
        let rows = page
            .split("\n|---|---|---|---:|\n")
            .nth(1)
            .expect("the table");
        let mut source = String::new();
        for folder in ["crates", "tests"] {
            add_source(&root.join(folder), &mut source);
        }
        let mutants = Mutant::all(&root).expect("the mutants can be read");
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let rows: Vec<Vec<&str>> = rows
            .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let named: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(named, names, "the rows of the page, and tests/mutants");
        for (row, mutant) in rows.iter().zip(&mutants) {
            let [name, what, caught, _] = row[..] else {
                panic!("a row of four cells: {row:?}")
            };
            assert_eq!(what, mutant.what, "{name}");
            let quoted = |mark: char| caught.split(mark).nth(1);
            let is_there = match (quoted('`'), quoted('*')) {
                (Some(scenario), _) if scenario.ends_with(".yaml") => root.join(scenario).is_file(),
                (Some(test), _) => {
                    let test = test.rsplit("::").next().expect("a name");
                    source.contains(&format!("fn {test}("))
                }
                (None, Some(law)) => source.contains(law),
                (None, None) => WITHOUT_A_TEST.contains(&name),
            };
            assert!(is_there, "{name}: no test {caught}");
        }
    }

    #[test]
    fn every_source_file_that_the_page_names_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(root.join("docs/mutants.md")).expect("the page");
        let files = page.split('`').filter(|word| word.ends_with(".rs"));
        let missing: Vec<&str> = files
            .filter(|file| !root.join(file).is_file() && !root.join("crates").join(file).is_file())
            .collect();
        assert!(missing.is_empty(), "docs/mutants.md names {missing:?}");
    }

    /// Adds the text of every source file below a folder, those of tests included.
    fn add_source(folder: &Path, source: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                add_source(&path, source);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *source += &std::fs::read_to_string(&path).expect("a source file");
            }
        }
    }

    #[test]
    fn a_mutant_whose_place_is_gone_or_there_twice_does_not_apply() {
        let mutant = Mutant::parse("m", "What.\ntests: walk\n==== a.rs\nx < 1\n----\nx <= 1\n")
            .expect("a mutant");
        let change = &mutant.changes[0];
        assert_eq!(change.made_in("if x < 1 {}"), Ok("if x <= 1 {}".to_owned()));
        assert!(
            change.made_in("if x < 2 {}").is_err() && change.made_in("x < 1 || x < 1").is_err()
        );
        assert!(
            Mutant::parse("m", "What.\n").is_err()
                && Mutant::parse("m", "What.\ntests: walk\n").is_err()
        );
    }
}
