//! The paths whose changes a person has to approve.

/// Patterns of paths. `?` matches one character and `*` any number of them within a name; `**` matches any number of
/// folders. A pattern matches the path and everything below it; one without a `/` matches a name in any folder. A path
/// that is a folder of the pattern itself matches as well: there it is a link or a submodule, and a change of it changes
/// everything below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanPaths(Vec<String>);

impl HumanPaths {
    /// Admits a list in which every pattern can name a path as git writes it: without blanks around it, without `***`, and
    /// with no part that is empty, `.` or `..`.
    pub fn new(patterns: Vec<String>) -> Option<Self> {
        let is_fit = |pattern: &String| {
            let parts = pattern.strip_suffix('/').unwrap_or(pattern).split('/');
            pattern.trim() == pattern
                && !pattern.contains("***")
                && parts
                    .into_iter()
                    .all(|part| !["", ".", ".."].contains(&part))
        };
        patterns.iter().all(is_fit).then_some(Self(patterns))
    }

    /// True if there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a pattern matches the path, which may be written as git quotes it.
    pub fn admits(&self, path: &str) -> bool {
        self.admits_plain(path) || unquoted(path).is_some_and(|path| self.admits_plain(&path))
    }

    /// True if a pattern matches the path of a link or a submodule, or may match a path below it.
    pub fn admits_link(&self, path: &str) -> bool {
        let is_above = |path: &str| {
            let path: Vec<&str> = path.split('/').collect();
            let mut patterns = self.0.iter().map(|pattern| parts(pattern));
            patterns.any(|parts| (1..parts.len()).any(|count| is_path(&parts[..count], &path)))
        };
        self.admits(path) || is_above(path) || unquoted(path).is_some_and(|path| is_above(&path))
    }

    fn admits_plain(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        let mut patterns = self.0.iter().map(|pattern| parts(pattern));
        patterns.any(|parts| parts.starts_with(&path) || is_path(&parts, &path))
    }
}

/// Splits a pattern into the parts of a path from the top of the repository; the last `**` matches everything below.
fn parts(pattern: &str) -> Vec<&str> {
    let anywhere = (!pattern.contains('/')).then_some("**");
    let named = pattern.strip_suffix('/').unwrap_or(pattern).split('/');
    anywhere.into_iter().chain(named).chain(["**"]).collect()
}

fn is_path(pattern: &[&str], path: &[&str]) -> bool {
    is_match(
        pattern,
        path,
        |part| *part == "**",
        |part, name| is_like(part, name),
    )
}

/// The path that git quotes like this: within `"`, with escapes as in C.
fn unquoted(path: &str) -> Option<String> {
    let inner = path.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        let plain = match byte {
            b'\\' => match rest.next()? {
                high @ b'0'..=b'3' => [high, rest.next()?, rest.next()?]
                    .iter()
                    .fold(0, |all, digit| all * 8 + (digit & 7)),
                letter => match b"abtnvfr".iter().zip(7..).find(|(one, _)| **one == letter) {
                    Some((_, control)) => control,
                    None => letter,
                },
            },
            other => other,
        };
        bytes.push(plain);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_like(pattern: &str, name: &str) -> bool {
    let [pattern, name] = [pattern, name].map(|text| text.chars().collect::<Vec<_>>());
    let is_one = |part: &char, found: &char| *part == '?' || part == found;
    is_match(&pattern, &name, |part| *part == '*', is_one)
}

/// Retries only the last wildcard with other lengths, because it can match anything an earlier one leaves. So the time
/// grows with the product of both lengths at most, although agents write the paths.
fn is_match<P, T>(
    pattern: &[P],
    found: &[T],
    is_wildcard: impl Fn(&P) -> bool,
    is_one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut to) = (0, 0);
    // The index after the last wildcard in `pattern`, and the end of the wildcard's match in `found`.
    let mut last = None;
    while to < found.len() {
        match pattern.get(at) {
            Some(part) if is_wildcard(part) => {
                at += 1;
                last = Some((at, to));
            }
            Some(part) if is_one(part, &found[to]) => (at, to) = (at + 1, to + 1),
            Some(_) | None => {
                let Some((behind, taken)) = last else {
                    return false;
                };
                (at, to) = (behind, taken + 1);
                last = Some((at, to));
            }
        }
    }
    pattern[at..].iter().all(is_wildcard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_admit_what_they_say() {
        let admits = |pattern: &str, path: &str| {
            HumanPaths::new(vec![pattern.to_owned()])
                .expect("a pattern")
                .admits(path)
        };
        for (pattern, path) in [
            (".github/", ".github/workflows/ci.yml"),
            ("**/migrations/**", "db/migrations/1.sql"),
            ("**/migrations/**", "migrations/a/1.sql"),
            ("settled.toml", "settled.toml"),
            ("settled.toml", "a/settled.toml"),
            ("*.tf", "main.tf"),
            ("*.tf", "a/main.tf"),
            ("**/*.tf", "main.tf"),
            ("**/*.tf", "a/b/main.tf"),
            ("a?.rs", "ab.rs"),
            ("deploy", "deploy/prod/x"),
            ("deploy", "a/deploy/x"),
            ("app/deploy", "app/deploy/prod/x"),
            ("deploy/", r#""deploy/x\ty.sh""#),
            ("deploy/", r#""deploy/\377.sh""#),
            (
                ".github/workflows/*.yml",
                r#"".github/workflows/e\001vil.yml""#,
            ),
            ("grün/*\"", r#""gr\303\274n/\"\"""#),
            ("\"a/", "\"a/b\""),
            // A link or a submodule where the folder was.
            ("deploy/", "deploy"),
            ("deploy/prod/*.sh", "deploy"),
            ("deploy/prod/*.sh", "deploy/prod"),
            ("**/migrations/**", "db/migrations"),
        ] {
            assert!(admits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            (".github/", ".gitignore"),
            (".github/", "a/.github/x"),
            ("db/*.tf", "main.tf"),
            ("db/*.tf", "a/db/main.tf"),
            ("*/deploy/", "src"),
            ("deploy/", r#""deploy\057x"#),
            ("a?.rs", "a.rs"),
            ("app/deploy", "deploy/x"),
            ("deploy", "deployment/x"),
            ("conf/*/prod.yml", "conf/q"),
        ] {
            assert!(!admits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_no_path_can_match_is_refused() {
        for pattern in [
            "",
            " ",
            "/",
            "/deploy/",
            "./deploy/",
            "deploy//prod/",
            "deploy//",
            "../deploy/",
            "deploy/.",
            "a/../b",
            " deploy/",
            "deploy/ ",
            "a/***",
        ] {
            assert_eq!(HumanPaths::new(vec![pattern.to_owned()]), None, "{pattern}");
        }
    }

    #[test]
    fn a_link_at_a_folder_of_a_pattern_matches_whatever_its_name() {
        let admits = |pattern: &str, path: &str| {
            let patterns = HumanPaths::new(vec![pattern.to_owned()]);
            patterns.expect("a pattern").admits_link(path)
        };
        for (pattern, path) in [
            ("conf/*/prod.yml", "conf/q"),
            ("conf/*/prod.yml", r#""conf/\377""#),
            ("conf/*/prod.yml", "conf"),
            ("a/**/z", "a/q"),
            ("a/**/z", "a/q/r"),
            ("*.tf", "vendor"),
            ("deploy/", "deploy"),
        ] {
            assert!(admits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("conf/*/prod.yml", "conf/q/other"),
            ("conf/*/prod.yml", "other"),
            ("a/**/z", "b/q"),
        ] {
            assert!(!admits(pattern, path), "{pattern} {path}");
        }
    }

    /// The definition, in exponential time.
    fn is_like_by_trying(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => {
                (0..=name.len()).any(|from| is_like_by_trying(rest, &name[from..]))
            }
            (Some((one, rest)), Some((other, others))) => {
                (*one == '?' || one == other) && is_like_by_trying(rest, others)
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// All texts of up to five of these characters.
    fn texts<const N: usize>(of: [char; N]) -> Vec<Vec<char>> {
        let mut texts = vec![Vec::new()];
        let mut of_last_length = texts.clone();
        for _ in 0..5 {
            let longer = |text: &Vec<char>| of.map(|one| [&text[..], &[one]].concat());
            of_last_length = of_last_length.iter().flat_map(longer).collect();
            texts.extend_from_slice(&of_last_length);
        }
        texts
    }

    #[test]
    fn every_short_pattern_matches_the_names_of_its_definition() {
        for pattern in texts(['a', 'b', '*', '?']) {
            for name in texts(['a', 'b']) {
                let [text, of] = [&pattern, &name].map(|text| text.iter().collect::<String>());
                let expected = is_like_by_trying(&pattern, &name);
                assert_eq!(is_like(&text, &of), expected, "{text} {of}");
            }
        }
    }

    #[test]
    fn no_path_takes_long_to_compare() {
        let admits = |pattern: String, path: String| {
            HumanPaths::new(vec![pattern])
                .expect("a pattern")
                .admits(&path)
        };
        assert!(!admits("*a".repeat(30) + "b", "a".repeat(4_000)));
        assert!(!admits("**/a/".repeat(30) + "b", "a/".repeat(2_000)));
    }

    #[test]
    fn without_a_pattern_no_path_belongs_to_people() {
        let paths = |patterns: &[&str]| {
            let patterns = patterns.iter().map(ToString::to_string).collect();
            HumanPaths::new(patterns).expect("patterns")
        };
        assert!(paths(&[]).is_empty() && !paths(&[]).admits("a"));
        assert!(!paths(&["a"]).is_empty());
    }

    #[test]
    fn a_quoted_path_is_compared_as_the_bytes_it_stands_for() {
        for (quoted, plain) in [
            (r#""\a\b\t\n\v\f\r""#, Some("\x07\x08\t\n\x0b\x0c\r")),
            (r#""\"\\x""#, Some("\"\\x")),
            (r#""\101\172\052""#, Some("Az*")),
            (r#""\303\274""#, Some("ü")),
            (r#""a\""#, None),
            (r#""\10""#, None),
            (r#"a\tb"#, None),
            (r#""a"#, None),
        ] {
            assert_eq!(unquoted(quoted).as_deref(), plain, "{quoted}");
        }
    }
}
