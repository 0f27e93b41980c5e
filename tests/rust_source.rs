//! Rust source as the architecture tests need it: tokens with their lines, without comments, string literals and tests.
//! A path that an attribute of serde has in a string counts as if it were written out.
//! Expects rustfmt's output, and knows no macros and no types.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{list, read};

/// One word or mark in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// An identifier, a number, `::`, or one mark.
    pub text: String,
    /// The line it is on, from 1.
    pub line: usize,
}

/// One file of a crate, without its tests.
#[derive(Debug)]
pub struct Source {
    /// Its module path from the crate's root; empty for the root itself.
    pub module: Vec<String>,
    /// Its path from the crate's source folder.
    pub file: PathBuf,
    /// Its tokens, without comments, string literals and tests.
    pub tokens: Vec<Token>,
    /// Its lines, with comments and blank ones, without those of its tests.
    pub lines: usize,
    /// The first line of each doc comment of an item.
    pub docs: Vec<String>,
}

/// Reads a crate's source folder, without files and folders named `tests` and modules declared under `#[cfg(test)]`. A
/// `main.rs` beside a `lib.rs` is a root of its own and counts as the module `main`.
pub fn sources(folder: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    rust_files(folder, &mut files);
    let has_library = folder.join("lib.rs").exists();
    let mut tests = BTreeSet::new();
    let mut sources = Vec::new();
    for path in files {
        let file = path
            .strip_prefix(folder)
            .expect("a file of this folder")
            .to_owned();
        let module = module(&file, has_library);
        let text = read(&path);
        let cut = cut_tests(&tokens(&text));
        for name in cut.modules {
            tests.insert([module.as_slice(), &[name]].concat());
        }
        sources.push(Source {
            module,
            file,
            tokens: cut.kept,
            lines: text.lines().count() - cut.lines,
            docs: first_doc_lines(&text),
        });
    }
    let is_test = |source: &Source| {
        (1..=source.module.len()).any(|length| tests.contains(&source.module[..length]))
    };
    sources.retain(|source| !is_test(source));
    sources
}

fn first_doc_lines(text: &str) -> Vec<String> {
    let doc = |line: &str| line.trim().strip_prefix("/// ").map(str::to_owned);
    let lines: Vec<Option<String>> = text.lines().map(doc).collect();
    // An empty line first, so that each line has one before it.
    let before = [None].into_iter().chain(lines.clone());
    let first = lines.into_iter().zip(before);
    first
        .filter(|(_, before)| before.is_none())
        .filter_map(|(line, _)| line)
        .collect()
}

impl Source {
    /// Counts the items of this file that other crates may name if its module may be named, without `pub(crate)`,
    /// fields and re-exports.
    pub fn public_items(&self) -> usize {
        const ITEMS: [&str; 10] = [
            "async", "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "unsafe",
        ];
        let pairs = self.tokens.windows(2);
        let is_item = |pair: &&[Token]| pair[0].text == "pub" && ITEMS.contains(&&*pair[1].text);
        pairs.filter(is_item).count()
    }

    /// Returns the names of the types defined in this file, those inside functions included; an associated type or an
    /// alias inside a body is none.
    pub fn types(&self) -> Vec<&str> {
        let mut names = Vec::new();
        // For each open brace: true if it contains items of a module.
        let mut open: Vec<bool> = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            match token.text.as_str() {
                "{" => {
                    let is_module = index >= 2 && self.tokens[index - 2].text == "mod";
                    open.push(is_module);
                }
                "}" => {
                    open.pop();
                }
                "struct" | "enum" => {
                    let name = self.tokens.get(index + 1).map(|name| name.text.as_str());
                    // A macro has `$name` there.
                    names.extend(name.filter(|name| *name != "$"));
                }
                "trait" | "type" if open.iter().all(|is_module| *is_module) => {
                    names.extend(self.tokens.get(index + 1).map(|name| name.text.as_str()));
                }
                _ => {}
            }
        }
        names
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in list(folder) {
        if path.is_dir() && !path.ends_with("tests") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
}

fn module(file: &Path, has_library: bool) -> Vec<String> {
    let mut names: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let is_root = names == ["lib"] || (names == ["main"] && !has_library);
    if is_root || names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// Returns the tokens of a text, skipping comments, string and character literals and lifetimes.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let (mut index, mut line) = (0, 1);
    while index < chars.len() {
        let begin = index;
        match at(index) {
            '/' if at(index + 1) == '/' => {
                while index < chars.len() && at(index) != '\n' {
                    index += 1;
                }
            }
            '/' if at(index + 1) == '*' => {
                while index < chars.len() && !(at(index) == '*' && at(index + 1) == '/') {
                    index += 1;
                }
                index += 2;
            }
            '"' => {
                index = end_of_text(&chars, index, 0);
                if names_a_path(&found) {
                    let path: String = chars[begin + 1..index - 1].iter().collect();
                    let path = tokens(&path);
                    found.extend(path.into_iter().map(|token| Token { line, ..token }));
                }
            }
            // An escaped character, `'x'`, or a lifetime, whose name is skipped too.
            '\'' if at(index + 1) == '\\' => {
                index += 3;
                while index < chars.len() && at(index) != '\'' {
                    index += 1;
                }
                index += 1;
            }
            '\'' if at(index + 2) == '\'' => index += 3,
            '\'' => {
                index += 1;
                while is_word(at(index)) {
                    index += 1;
                }
            }
            c if is_word(c) => {
                while is_word(at(index)) {
                    index += 1;
                }
                let word: String = chars[begin..index].iter().collect();
                let hashes = (index..).take_while(|i| at(*i) == '#').count();
                let is_prefix = matches!(word.as_str(), "r" | "b" | "br" | "c" | "cr");
                if is_prefix && at(index + hashes) == '"' {
                    let raw = if word.contains('r') { hashes + 1 } else { 0 };
                    index = end_of_text(&chars, index + hashes, raw);
                } else if word == "b" && at(index) == '\'' {
                    // The next turn skips the character after it.
                } else {
                    found.push(Token { text: word, line });
                }
            }
            ':' if at(index + 1) == ':' => {
                found.push(Token {
                    text: "::".to_owned(),
                    line,
                });
                index += 2;
            }
            c => {
                if !c.is_whitespace() {
                    found.push(Token {
                        text: c.to_string(),
                        line,
                    });
                }
                index += 1;
            }
        }
        line += (begin..index).filter(|i| at(*i) == '\n').count();
    }
    found
}

/// True if the next string is a path of Rust: serde's attributes name functions and types in strings.
fn names_a_path(before: &[Token]) -> bool {
    const ATTRIBUTES: [&str; 7] = [
        "deserialize_with",
        "from",
        "into",
        "serialize_with",
        "skip_serializing_if",
        "try_from",
        "with",
    ];
    matches!(before, [.., name, mark] if mark.text == "=" && ATTRIBUTES.contains(&&*name.text))
}

/// The index after the string literal that opens at `index`; `raw` is 0, or one more than the number of `#` around it.
fn end_of_text(chars: &[char], mut index: usize, raw: usize) -> usize {
    index += 1;
    while index < chars.len() {
        match chars[index] {
            '\\' if raw == 0 => index += 2,
            '"' if raw == 0 => return index + 1,
            '"' if chars[index + 1..].iter().take_while(|c| **c == '#').count() >= raw - 1 => {
                return index + raw;
            }
            _ => index += 1,
        }
    }
    index
}

struct Cut {
    kept: Vec<Token>,
    /// The number of lines in tests.
    lines: usize,
    /// The test modules in files of their own.
    modules: Vec<String>,
}

/// Removes every item under `#[cfg(test)]`.
fn cut_tests(tokens: &[Token]) -> Cut {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut cut = Cut {
        kept: Vec::new(),
        lines: 0,
        modules: Vec::new(),
    };
    let mut index = 0;
    while index < tokens.len() {
        let texts = tokens[index..].iter().map(|token| token.text.as_str());
        if !texts.take(MARK.len()).eq(MARK) {
            cut.kept.push(tokens[index].clone());
            index += 1;
            continue;
        }
        let end = end_of_item(tokens, index + MARK.len());
        cut.lines += tokens[end - 1].line + 1 - tokens[index].line;
        let item = &tokens[index..end];
        if let [.., keyword, name, last] = item
            && keyword.text == "mod"
            && last.text == ";"
        {
            cut.modules.push(name.text.clone());
        }
        index = end;
    }
    cut
}

/// The index after the item that begins at `index`: after its `;`, or after the brace that closes its body.
fn end_of_item(tokens: &[Token], mut index: usize) -> usize {
    let mut depth = 0_usize;
    while index < tokens.len() {
        match tokens[index].text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
        let closes = tokens[index].text == "}" && depth == 0;
        index += 1;
        if closes && tokens.get(index).is_none_or(|next| next.text != ";") {
            return index;
        }
    }
    index
}
