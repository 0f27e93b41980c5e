//! The schemas in the form of draft 07, the newest that most editors read. The documents use no keyword that the two
//! drafts read differently (a test checks that), so only the head differs, and the keyword in which an editor finds the
//! message to show.

use super::Schema;

/// Each text that draft 07 replaces, and its replacement: the draft, and the keyword of the sentence that VS Code and
/// similar editors show for a value that does not fit.
const WORDS: [(&str, &str); 2] = [
    (
        "\"https://json-schema.org/draft/2020-12/schema\"",
        "\"http://json-schema.org/draft-07/schema#\"",
    ),
    ("\"x-expected\": \"", "\"errorMessage\": \"expected "),
];

impl Schema {
    /// Returns the schema document in the form of draft 07, as text. It accepts exactly the documents that
    /// [`Schema::source`] accepts.
    pub fn draft07(self) -> String {
        WORDS
            .iter()
            .fold(self.source().to_owned(), |text, (word, other)| {
                text.replace(word, other)
            })
    }
}
