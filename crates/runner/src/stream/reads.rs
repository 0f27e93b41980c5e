//! Finds the files that an agent read: with its own tool for reading files, or with a plain command that prints one. A
//! pipe, a variable or a pattern could hide something, so such a command does not count.

/// Commands that print the files in their arguments.
const PRINTERS: [&str; 5] = ["cat", "nl", "head", "tail", "sed"];

/// The files that a command line prints; none unless it is one simple command.
pub(super) fn printed_by(line: &str) -> Vec<String> {
    let line = line.trim();
    let inner = [
        "bash -lc ",
        "/bin/bash -lc ",
        "bash -c ",
        "sh -c ",
        "zsh -lc ",
    ]
    .iter()
    .find_map(|shell| line.strip_prefix(shell))
    .map(|rest| unquoted(rest.trim()));
    let Some(words) = words(inner.as_deref().unwrap_or(line)) else {
        return Vec::new();
    };
    let Some((program, arguments)) = words.split_first() else {
        return Vec::new();
    };
    if !PRINTERS.contains(&program.as_str()) {
        return Vec::new();
    }
    let mut files: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    // `sed` prints only with `-n`, and its next argument is the script; with `-i` it writes.
    if program == "sed" {
        let is_quiet = arguments.first().is_some_and(|first| first == "-n");
        let options = arguments.iter().filter(|word| word.starts_with('-'));
        if !is_quiet || options.count() > 1 || files.is_empty() || !prints(files.remove(0)) {
            return Vec::new();
        }
    }
    // `head` and `tail` print nothing for a count of zero lines.
    let counts = arguments
        .iter()
        .map(|word| word.trim_start_matches(|c: char| !c.is_ascii_digit()));
    let is_none = |count: &str| !count.is_empty() && count.chars().all(|c| c == '0');
    if ["head", "tail"].contains(&program.as_str()) && counts.into_iter().any(is_none) {
        return Vec::new();
    }
    files
        .into_iter()
        .filter(|word| {
            let count = word.trim_start_matches('+');
            !count.chars().all(|c| c.is_ascii_digit())
        })
        .cloned()
        .collect()
}

/// True if a script of `sed` prints lines by their numbers and does nothing else: `1,200p`, `10,$p`, `p`.
fn prints(script: &str) -> bool {
    let is_address = |part: &str| match part.trim() {
        "$" => true,
        number => !number.starts_with('0') && number.parse::<u32>().is_ok(),
    };
    script.split(';').all(|command| {
        let lines = command.trim().strip_suffix('p').map(str::trim);
        lines.is_some_and(|lines| lines.is_empty() || lines.splitn(2, ',').all(is_address))
    })
}

fn unquoted(text: &str) -> String {
    ['\'', '"']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(text)
        .to_owned()
}

/// The words of a simple command; none if a shell would do more than split it.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '$' | '`' | '\\' | '\n') => return None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '{' | '~' | '#') => {
                return None;
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_command_that_prints_files_is_reading() {
        for (line, files) in [
            ("cat src/a.rs", vec!["src/a.rs"]),
            ("bash -lc 'cat src/a.rs b.txt'", vec!["src/a.rs", "b.txt"]),
            ("bash -lc \"sed -n '1,200p' src/a.rs\"", vec!["src/a.rs"]),
            ("sed -n p src/a.rs", vec!["src/a.rs"]),
            ("sed -n '1,5p; 10,$p' src/a.rs", vec!["src/a.rs"]),
            ("nl -ba 'a b.rs'", vec!["a b.rs"]),
            ("head -n 40 src/a.rs", vec!["src/a.rs"]),
            ("tail -n +10 src/a.rs", vec!["src/a.rs"]),
        ] {
            assert_eq!(printed_by(line), files, "{line}");
        }
        for line in [
            "cat src/a.rs | head -1",
            "cat src/*.rs",
            "cat $FILE",
            "cat src/a.rs > /dev/null",
            "echo src/a.rs",
            "sed -i s/a/b/ src/a.rs",
            "sed -n -i s/a/b/ src/a.rs",
            "sed -n -i p src/a.rs",
            "sed p src/a.rs",
            "sed -n",
            "sed -n --in-place=.old s/a/b/ src/a.rs",
            "sed -n '' src/a.rs",
            "sed -n 0p src/a.rs",
            "sed -n '1,5d' src/a.rs",
            "sed -n '/x/p' src/a.rs",
            "sed -n 'w b.rs' src/a.rs",
            "head -n 0 src/a.rs",
            "head -0 src/a.rs",
            "tail -c 0 src/a.rs",
            "tail --lines=0 src/a.rs",
            "grep -n x src/a.rs",
            "true && cat src/a.rs",
            "cat 'src/a.rs",
        ] {
            assert!(printed_by(line).is_empty(), "{line}");
        }
    }
}
