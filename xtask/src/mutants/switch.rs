//! Many changes in one build: each is in the code beside what it replaces, and a variable of the environment chooses
//! one of them. A build takes seconds to minutes and most tests take less, so a room's changes are tried many times
//! faster than with a build for each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use settled_tests::packages;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::sample::Change;
use super::{cargo_in, read, write};

/// The variable that holds the number of the change to switch on.
pub(super) const CHOSEN: &str = "SETTLED_CHANGE";

/// The code that every root of the room's crates gets, for `crate::is_changed(NUMBER)`.
fn switch() -> String {
    format!(
        r#"
#[doc(hidden)]
#[allow(dead_code, unreachable_pub)]
pub(crate) fn is_changed(number: usize) -> bool {{
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("{CHOSEN}").ok()?.parse().ok()) == Some(number)
}}
"#
    )
}

/// A room whose sources hold changes that can be switched on.
pub(super) struct Switches {
    /// The sources without changes.
    before: BTreeMap<PathBuf, String>,
    /// The sources in which the room's crates begin.
    roots: Vec<PathBuf>,
    /// The numbers of the changes that the build holds: their places in the list.
    pub(super) held: BTreeSet<usize>,
}

impl Switches {
    /// Puts the changes into the copy's sources. Those that do not compile beside the code that they replace are left
    /// out: most of them compile nowhere, and others would in place of it, such as a change of a constant.
    pub(super) fn put(copy: &Path, room: &str, changes: &[Change]) -> Result<Self, String> {
        let mut switches = Self {
            before: BTreeMap::new(),
            roots: roots(room)?,
            held: (0..changes.len()).collect(),
        };
        let files = changes.iter().map(|change| &change.file);
        for file in switches.roots.iter().chain(files) {
            switches
                .before
                .insert(file.clone(), read(&copy.join(file))?);
        }
        loop {
            let places = switches.write(copy, changes)?;
            let errors = errors(copy, room)?;
            if errors.is_empty() {
                return Ok(switches);
            }
            let blamed = blamed(&errors, &places);
            if blamed.is_empty() {
                switches.restore(copy)?;
                return Err(format!(
                    "{room} does not compile with switches: {errors:#?}"
                ));
            }
            switches.held.retain(|number| !blamed.contains(number));
        }
    }

    /// Writes the sources with the held changes, and returns where each of these is.
    fn write(
        &mut self,
        copy: &Path,
        changes: &[Change],
    ) -> Result<BTreeMap<PathBuf, Vec<Place>>, String> {
        let mut places = BTreeMap::new();
        for (file, text) in &self.before {
            let held = self.held.iter().map(|&number| (number, &changes[number]));
            let here = held.filter(|(_, change)| change.file == *file).collect();
            let (mut switched, placed) = with_switches(text, here)?;
            let has_place = |number: &usize| placed.iter().any(|place| place.number == *number);
            self.held
                .retain(|number| changes[*number].file != *file || has_place(number));
            if self.roots.contains(file) {
                switched += &switch();
            }
            let path = copy.join(file);
            if std::fs::read_to_string(&path).ok().as_ref() != Some(&switched) {
                write(&path, switched.as_bytes())?;
            }
            places.insert(file.clone(), placed);
        }
        Ok(places)
    }

    /// Writes the sources back as they were.
    pub(super) fn restore(&self, copy: &Path) -> Result<(), String> {
        let mut files = self.before.iter();
        files.try_for_each(|(file, text)| write(&copy.join(file), text.as_bytes()))
    }
}

/// The part of a file's changed text that belongs to one change, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    number: usize,
    bytes: Range<usize>,
}

/// The code around a part of a file that makes it a change to be switched on.
#[derive(Debug)]
struct Wrap {
    number: usize,
    bytes: Range<usize>,
    before: String,
    after: &'static str,
}

/// Returns the text with a switch at each change that has one, and the place of each. Changes lie in one another, so
/// what a switched-on change holds is the plain text: one is on at a time.
fn with_switches(
    text: &str,
    changes: Vec<(usize, &Change)>,
) -> Result<(String, Vec<Place>), String> {
    let parsed = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut finder = Finder {
        text,
        starts: BTreeMap::new(),
        wraps: Vec::new(),
    };
    for (number, change) in changes {
        let bytes = change.bytes_in(text)?;
        let replacement = &change.replacement;
        let (before, after) = match &*change.genre {
            "FnValue" => (
                format!("if crate::is_changed({number}) {{ return {replacement}; }} "),
                "",
            ),
            "MatchArmGuard" => (
                format!("if crate::is_changed({number}) {{ {replacement} }} else {{ "),
                " }",
            ),
            _ => {
                let starts = finder.starts.entry(bytes.start).or_default();
                starts.push((number, replacement));
                continue;
            }
        };
        finder.wraps.push(Wrap {
            number,
            bytes,
            before,
            after,
        });
    }
    finder.visit_file(&parsed);
    Ok(wrapped(text, finder.wraps))
}

/// Returns the text with all wraps around their parts, the outer ones first.
fn wrapped(text: &str, mut wraps: Vec<Wrap>) -> (String, Vec<Place>) {
    wraps.sort_by_key(|wrap| (wrap.bytes.start, std::cmp::Reverse(wrap.bytes.end)));
    let (mut switched, mut places) = (String::new(), Vec::new());
    let mut open: Vec<(Wrap, usize)> = Vec::new();
    let mut at = 0;
    let mut close =
        |open: &mut Vec<(Wrap, usize)>, switched: &mut String, at: &mut usize, until| {
            while let Some((wrap, start)) = open.pop_if(|(wrap, _)| wrap.bytes.end <= until) {
                switched.push_str(&text[*at..wrap.bytes.end]);
                *at = wrap.bytes.end;
                switched.push_str(wrap.after);
                places.push(Place {
                    number: wrap.number,
                    bytes: start..switched.len(),
                });
            }
        };
    for wrap in wraps {
        close(&mut open, &mut switched, &mut at, wrap.bytes.start);
        switched.push_str(&text[at..wrap.bytes.start]);
        at = wrap.bytes.start;
        let start = switched.len();
        switched.push_str(&wrap.before);
        open.push((wrap, start));
    }
    close(&mut open, &mut switched, &mut at, text.len());
    switched.push_str(&text[at..]);
    (switched, places)
}

/// Finds the expressions and arms to which changes of an operator, an arm or a field belong.
struct Finder<'a> {
    text: &'a str,
    /// The changes by the byte at which the operator, the arm or the field begins.
    starts: BTreeMap<usize, Vec<(usize, &'a String)>>,
    wraps: Vec<Wrap>,
}

impl Finder<'_> {
    /// Wraps `bytes` so that each change that begins at `start` can take its place; `instead` makes the changed code
    /// of its replacement.
    fn choose(&mut self, start: usize, bytes: &Range<usize>, instead: impl Fn(&str) -> String) {
        for (number, replacement) in self.starts.remove(&start).unwrap_or_default() {
            let instead = instead(replacement);
            self.wraps.push(Wrap {
                number,
                bytes: bytes.clone(),
                before: format!("(if crate::is_changed({number}) {{ {instead} }} else {{ "),
                after: " })",
            });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let (whole, operator) = (node.span().byte_range(), node.op.span().byte_range());
        let text = self.text;
        self.choose(operator.start, &whole, |replacement| {
            let before = &text[whole.start..operator.start];
            format!("{before}{replacement}{}", &text[operator.end..whole.end])
        });
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let (whole, operator) = (node.span().byte_range(), node.op.span().byte_range());
        let operand = &self.text[operator.end..whole.end];
        self.choose(operator.start, &whole, |_| operand.to_owned());
        visit::visit_expr_unary(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        for (number, _) in self
            .starts
            .remove(&node.span().byte_range().start)
            .unwrap_or_default()
        {
            let (bytes, before, after) = if let syn::Pat::Guard(guarded) = &node.pat {
                let before = format!("!crate::is_changed({number}) && (");
                (guarded.guard.span().byte_range(), before, ")")
            } else {
                let end = node.pat.span().byte_range().end;
                (end..end, format!(" if !crate::is_changed({number})"), "")
            };
            self.wraps.push(Wrap {
                number,
                bytes,
                before,
                after,
            });
        }
        visit::visit_arm(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        let text = |span: proc_macro2::Span| &self.text[span.byte_range()];
        let rest = node.rest.as_ref().map(|rest| match text(rest.span()) {
            "Default::default()" => format!("<{}>::default()", text(node.path.span())),
            rest => format!("({rest})"),
        });
        for field in &node.fields {
            let (Some(rest), syn::Member::Named(name)) = (&rest, &field.member) else {
                continue;
            };
            let bytes = field.expr.span().byte_range();
            let first = self.wraps.len();
            self.choose(field.span().byte_range().start, &bytes, |_| {
                format!("{rest}.{name}")
            });
            if field.colon_token.is_none() {
                for wrap in &mut self.wraps[first..] {
                    wrap.before.insert_str(0, &format!("{name}: "));
                }
            }
        }
        visit::visit_expr_struct(self, node);
    }
}

/// The files in which the room's library and programs begin.
fn roots(room: &str) -> Result<Vec<PathBuf>, String> {
    let packages = packages::ours();
    let package = packages.iter().find(|package| package["name"] == *room);
    let package = package.ok_or_else(|| format!("no package is called {room}"))?;
    let is_product = |target: &&Value| {
        let kinds = target["kind"].as_array().into_iter().flatten();
        kinds.into_iter().any(|kind| kind == "lib" || kind == "bin")
    };
    let root = settled_tests::repository();
    let file = |target: &Value| {
        let path = Path::new(target["src_path"].as_str()?);
        path.strip_prefix(root).ok().map(Path::to_owned)
    };
    let targets = package["targets"].as_array().into_iter().flatten();
    Ok(targets.filter(is_product).filter_map(file).collect())
}

/// Has the compiler check the room and its tests, and returns its errors.
pub(super) fn errors(copy: &Path, room: &str) -> Result<Vec<Value>, String> {
    let output = cargo_in(copy)
        .args(["check", "--offline", "--tests", "--package", room])
        .args(["--message-format", "json"])
        .output()
        .map_err(|error| error.to_string())?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors: Vec<Value> = messages
        .filter(|line| line["message"]["level"] == "error")
        .map(|mut line| line["message"].take())
        .collect();
    match output.status.success() || !errors.is_empty() {
        true => Ok(errors),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Blames for each error the innermost change at its place, or else the changes that it mentions. For an error outside all
/// changes, blames every change of its file.
fn blamed(errors: &[Value], places: &BTreeMap<PathBuf, Vec<Place>>) -> BTreeSet<usize> {
    let mut blamed = BTreeSet::new();
    for error in errors {
        let spans = error["spans"].as_array().into_iter().flatten();
        let (at, beside): (Vec<&Value>, Vec<&Value>) =
            spans.partition(|span| span["is_primary"] == true);
        let of = |span: &&Value| places.get(Path::new(span["file_name"].as_str()?));
        let innermost = |span: &&Value| innermost(span, of(span)?);
        let mut found: Vec<usize> = at.iter().filter_map(innermost).collect();
        if found.is_empty() {
            found.extend(beside.iter().filter_map(innermost));
        }
        if found.is_empty() {
            found.extend(at.iter().filter_map(of).flatten().map(|place| place.number));
        }
        blamed.extend(found);
    }
    blamed
}

/// The smallest change that holds the place, or that the place holds.
fn innermost(span: &Value, places: &[Place]) -> Option<usize> {
    let byte = |key: &str| usize::try_from(span[key].as_u64()?).ok();
    let (start, end) = (byte("byte_start")?, byte("byte_end")?);
    let touching = places
        .iter()
        .filter(|place| place.bytes.start < end && start < place.bytes.end);
    let smallest = touching.min_by_key(|place| (place.bytes.start > start, place.bytes.len()));
    smallest.map(|place| place.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the first place of `old` in the text, as `cargo-mutants` lists it.
    fn change(text: &str, genre: &str, old: &str, replacement: &str) -> Change {
        let start = text.find(old).expect("the text holds it");
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = start - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        let listed = serde_json::json!({
            "file": "crates/a/src/lib.rs", "genre": genre, "replacement": replacement,
            "name": format!("crates/a/src/lib.rs:{line}:{column}: {old}"),
            "span": {
                "start": {"line": line, "column": column},
                "end": {"line": line, "column": column + old.chars().count()},
            },
        });
        Change::read(&listed).expect("a change")
    }

    fn switched(text: &str, changes: &[(&str, &str, &str)]) -> (String, Vec<Place>) {
        let changes: Vec<Change> = changes
            .iter()
            .map(|(genre, old, replacement)| change(text, genre, old, replacement))
            .collect();
        with_switches(text, changes.iter().enumerate().collect()).expect("Rust")
    }

    #[test]
    fn each_kind_of_change_stands_beside_the_code_it_replaces() {
        for (code, genre, old, replacement, after) in [
            (
                "a() + b",
                "FnValue",
                "a() + b",
                "0",
                "if crate::is_changed(0) { return 0; } a() + b",
            ),
            (
                "a <= b",
                "BinaryOperator",
                "<=",
                ">",
                "(if crate::is_changed(0) { a > b } else { a <= b })",
            ),
            (
                "!a",
                "UnaryOperator",
                "!",
                "",
                "(if crate::is_changed(0) { a } else { !a })",
            ),
            (
                "match a { b if go => 1, _ => 2 }",
                "MatchArmGuard",
                "go",
                "true",
                "match a { b if if crate::is_changed(0) { true } else { go } => 1, _ => 2 }",
            ),
            (
                "match a { 1 => 2, _ => 3 }",
                "MatchArm",
                "1 => 2,",
                "",
                "match a { 1 if !crate::is_changed(0) => 2, _ => 3 }",
            ),
            (
                "match a { b if go => 1, _ => 2 }",
                "MatchArm",
                "b if go => 1,",
                "",
                "match a { b if !crate::is_changed(0) && (go) => 1, _ => 2 }",
            ),
            (
                "A { b: 1, ..c }",
                "StructField",
                "b: 1",
                "",
                "A { b: (if crate::is_changed(0) { (c).b } else { 1 }), ..c }",
            ),
            (
                "A { b, ..Default::default() }",
                "StructField",
                "b",
                "",
                "A { b: (if crate::is_changed(0) { <A>::default().b } else { b }), ..Default::default() }",
            ),
        ] {
            let text = format!("fn f() {{ {code} }}");
            let (text, places) = switched(&text, &[(genre, old, replacement)]);
            assert_eq!(text, format!("fn f() {{ {after} }}"));
            syn::parse_file(&text).expect("Rust");
            assert_eq!(places.len(), 1, "{text}");
        }
    }

    #[test]
    fn changes_that_lie_in_one_another_keep_their_places() {
        let text = "fn f() { a && b || c }\n";
        let (text, places) = switched(
            text,
            &[
                ("BinaryOperator", "&&", "||"),
                ("BinaryOperator", "||", "&&"),
                ("BinaryOperator", "||", "^"),
            ],
        );
        assert_eq!(
            text,
            "fn f() { (if crate::is_changed(1) { a && b && c } else { (if crate::is_changed(2) { a && b ^ c } else { \
             (if crate::is_changed(0) { a || b } else { a && b }) || c }) }) }\n"
        );
        let of = |number: usize| {
            let place = places.iter().find(|place| place.number == number);
            &text[place.expect("a place").bytes.clone()]
        };
        assert_eq!(
            of(0),
            "(if crate::is_changed(0) { a || b } else { a && b })"
        );
        assert!(of(1).contains(of(2)) && of(2).contains(of(0)));
    }

    #[test]
    fn an_error_is_blamed_on_the_innermost_change_or_on_the_whole_file() {
        let places = [(0, 10..90), (1, 20..40), (2, 50..60)];
        let places = places.map(|(number, bytes)| Place { number, bytes });
        let file = PathBuf::from("crates/a/src/lib.rs");
        let places = BTreeMap::from([(file, places.into())]);
        let span = |start: usize, end: usize, is_primary: bool| {
            serde_json::json!({
                "file_name": "crates/a/src/lib.rs", "byte_start": start, "byte_end": end,
                "is_primary": is_primary,
            })
        };
        for (spans, expected) in [
            (vec![span(25, 30, true)], vec![1]),
            (vec![span(45, 46, true), span(25, 30, false)], vec![0]),
            (vec![span(95, 99, true), span(51, 52, false)], vec![2]),
            (vec![span(95, 99, true)], vec![0, 1, 2]),
        ] {
            let error = serde_json::json!({ "spans": spans });
            let blamed: Vec<usize> = blamed(&[error], &places).into_iter().collect();
            assert_eq!(blamed, expected);
        }
    }
}
