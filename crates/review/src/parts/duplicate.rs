//! The test for a new finding that repeats an old one: the same place and the same words. The definitions are exact, so
//! that a refusal can tell a reviewer which thread the finding repeats and why.

use std::collections::BTreeSet;

use message_schema::packet::{Finding, LineRange};

use review_words::keywords::{keywords, normalised};
use review_words::thread::{Thread, words_of};

/// The number of lines on either side of a finding that still count as its place.
const LINES_AROUND: u32 = 3;

/// The features by which two findings are compared.
#[derive(Clone, Debug)]
pub(crate) struct FindingSignature<'a> {
    file: Option<&'a str>,
    lines: Option<LineRange>,
    fingerprint: Option<&'a str>,
    title: Option<String>,
    keywords: BTreeSet<String>,
}

impl<'a> FindingSignature<'a> {
    pub(crate) fn of_finding(finding: &'a Finding) -> Self {
        Self {
            file: finding.file.as_ref().map(|file| file.as_str()),
            lines: finding.lines.or(finding.line.map(LineRange::line)),
            fingerprint: finding.fingerprint.as_deref(),
            title: finding.title.as_deref().and_then(normalised),
            keywords: keywords(words_of(finding).unwrap_or_default()),
        }
    }

    pub(crate) fn of_thread(thread: &'a Thread) -> Self {
        Self {
            file: thread.file.as_ref().map(|file| file.as_str()),
            lines: thread.lines,
            fingerprint: thread.fingerprint.as_deref(),
            title: thread.title.as_deref().and_then(normalised),
            keywords: keywords(thread.words.as_deref().unwrap_or_default()),
        }
    }

    /// True if both describe the same problem: location and text match.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.same_location(other) && self.same_text(other)
    }

    /// True if this raises a problem of an earlier round again: it matches, or has the same title and file on any
    /// lines. Lines move with every fix, and people know a problem by its title.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.matches(earlier) || (self.same_title(earlier) && self.file == earlier.file)
    }

    /// True if a reader could take one for the other, so that silence about one of them means nothing.
    pub(crate) fn resembles(&self, other: &Self) -> bool {
        self.same_title(other) || self.same_location(other)
    }

    fn same_title(&self, other: &Self) -> bool {
        self.title.is_some() && self.title == other.title
    }

    /// True if both have the same path and their lines, widened by 3, overlap. If one has no lines, the path is enough;
    /// without a path there is no match.
    fn same_location(&self, other: &Self) -> bool {
        let same_file = self.file.is_some() && self.file == other.file;
        same_file
            && match (self.lines, other.lines) {
                (Some(a), Some(b)) => {
                    a.first() <= b.last().saturating_add(LINES_AROUND)
                        && b.first() <= a.last().saturating_add(LINES_AROUND)
                }
                (Some(_) | None, _) => true,
            }
    }

    /// True if both have the same fingerprint, or share at least half of the smaller set of keywords.
    fn same_text(&self, other: &Self) -> bool {
        let same_fingerprint = self.fingerprint.is_some() && self.fingerprint == other.fingerprint;
        let smaller = self.keywords.len().min(other.keywords.len());
        let common = self.keywords.intersection(&other.keywords).count();
        same_fingerprint || (smaller > 0 && 2 * common >= smaller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(
        file: Option<&'static str>,
        lines: Option<&str>,
        title: &str,
    ) -> FindingSignature<'static> {
        let lines = lines.map(|text| LineRange::parse(text).expect("lines"));
        FindingSignature {
            file,
            lines,
            fingerprint: None,
            title: normalised(title),
            keywords: keywords(title),
        }
    }

    fn same(a: &FindingSignature<'_>, b: &FindingSignature<'_>) -> bool {
        assert_eq!(a.matches(b), b.matches(a), "a match goes both ways");
        a.matches(b)
    }

    #[test]
    fn the_place_is_the_path_and_the_lines_widened_by_three() {
        let at = |lines| mark(Some("a.rs"), lines, "empty diff crashes");
        assert!(same(&at(Some("40-45")), &at(Some("48"))));
        assert!(!same(&at(Some("40-45")), &at(Some("49"))));
        assert!(same(&at(Some("40-45")), &at(None)), "the path is enough");
        assert!(!same(
            &at(None),
            &mark(Some("b.rs"), None, "empty diff crashes")
        ));
        assert!(
            !same(
                &mark(None, None, "empty diff"),
                &mark(None, None, "empty diff")
            ),
            "no path"
        );
    }

    #[test]
    fn the_words_match_from_half_of_the_smaller_set() {
        let says = |title| mark(Some("a.rs"), None, title);
        assert!(same(
            &says("Empty diff is not handled"),
            &says("handling of empty diffs")
        ));
        assert!(same(
            &says("empty diff"),
            &says("diff of the whole branch crashes")
        ));
        assert!(!same(
            &says("empty diff crashes"),
            &says("diff leaks file handles")
        ));
        assert!(!same(&says("the of"), &says("the of")), "no keywords");
    }

    #[test]
    fn the_same_title_and_file_is_the_same_problem_on_whatever_lines() {
        let at = |file, lines, title| mark(file, Some(lines), title);
        let known = at(Some("a.rs"), "40", "Empty diff: crash");
        assert!(at(Some("a.rs"), "400", "empty  diff crash!").repeats(&known));
        assert!(!at(Some("a.rs"), "400", "empty diff crashes").repeats(&known));
        assert!(!at(Some("b.rs"), "40", "empty diff crash").repeats(&known));
        assert!(mark(None, None, "Leak").repeats(&mark(None, None, "leak")));
        assert!(!mark(None, None, "").repeats(&mark(None, None, "")));
        assert!(!mark(None, None, "?").repeats(&mark(None, None, "?")));
    }

    #[test]
    fn what_resembles_has_the_title_or_the_place() {
        let known = mark(Some("a.rs"), Some("40"), "empty diff");
        assert!(mark(Some("b.rs"), None, "Empty diff").resembles(&known));
        assert!(mark(Some("a.rs"), Some("43"), "leak").resembles(&known));
        assert!(!mark(Some("a.rs"), Some("44"), "leak").resembles(&known));
        assert!(!mark(None, None, "leak").resembles(&known));
    }

    #[test]
    fn a_fingerprint_stands_for_the_words_and_not_for_the_place() {
        let with = |file| FindingSignature {
            fingerprint: Some("fp-1"),
            ..mark(file, None, "one thing")
        };
        let other = FindingSignature {
            keywords: keywords("quite another"),
            ..with(Some("a.rs"))
        };
        assert!(same(&with(Some("a.rs")), &other));
        assert!(!same(&with(None), &with(None)));
    }
}
