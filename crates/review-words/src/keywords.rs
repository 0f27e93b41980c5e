//! The words by which two findings are compared: the keywords of a text, and a title as people compare titles.

use std::collections::BTreeSet;

/// Returns a title in lower case, with one blank for everything that is neither letter nor digit; `None` if nothing is
/// left of it.
pub fn normalised(title: &str) -> Option<String> {
    let title = title.to_lowercase();
    let words: Vec<&str> = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the words of a text in lower case, split at everything that is neither letter nor digit, without stop words
/// and single characters, each cut to its stem.
pub fn keywords(text: &str) -> BTreeSet<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1 && !STOP_WORDS.contains(word))
        .map(stem)
        .collect()
}

/// Removes the most common English endings: enough that `handles`, `handled` and `handling` become the same.
fn stem(word: &str) -> String {
    const ENDINGS: [(&str, &str); 12] = [
        ("ations", ""),
        ("ation", ""),
        ("ating", ""),
        ("ated", ""),
        ("ates", ""),
        ("ate", ""),
        ("ings", ""),
        ("ing", ""),
        ("ies", "y"),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ];
    let cut = ENDINGS.iter().find_map(|(ending, instead)| {
        let stem = word.strip_suffix(ending)?;
        (stem.chars().count() >= 3 && !word.ends_with("ss")).then(|| format!("{stem}{instead}"))
    });
    let stem = cut.unwrap_or_else(|| word.to_owned());
    stem.strip_suffix('e')
        .filter(|short| short.chars().count() >= 3)
        .map_or(stem.clone(), str::to_owned)
}

const STOP_WORDS: [&str; 44] = [
    "the", "an", "is", "are", "was", "be", "been", "not", "no", "of", "in", "on", "at", "to",
    "for", "from", "by", "with", "without", "and", "or", "but", "if", "then", "when", "than",
    "that", "this", "these", "it", "its", "as", "can", "could", "may", "might", "should", "would",
    "will", "does", "do", "has", "have", "had",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_do_not_tell_words_apart() {
        for (a, b) in [
            ("handles", "handled"),
            ("handling", "handle"),
            ("queries", "query"),
            ("boxes", "box"),
            ("validated", "validation"),
        ] {
            assert_eq!(stem(a), stem(b));
        }
        assert_eq!(stem("class"), "class");
    }

    #[test]
    fn a_text_is_compared_by_its_words() {
        for (text, title, words) in [
            ("", None, vec![]),
            (" -- ", None, vec![]),
            ("The URL", Some("the url"), vec!["url"]),
            (
                "Leaks: a file-handle, and 2 sockets!",
                Some("leaks a file handle and 2 sockets"),
                vec!["fil", "handl", "leak", "socket"],
            ),
            (
                "Ärger im IO",
                Some("ärger im io"),
                vec!["im", "io", "ärger"],
            ),
        ] {
            assert_eq!(normalised(text).as_deref(), title, "{text}");
            assert_eq!(
                keywords(text),
                words.iter().map(|&word| word.to_owned()).collect()
            );
        }
    }
}
