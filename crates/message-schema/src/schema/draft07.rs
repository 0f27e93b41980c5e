//! The schemas in the form of draft 07, which is as far as most editors read. The documents use no
//! keyword that the two drafts read differently (a test says so), so that the form differs in its
//! head only, and in the word by which an editor finds what to say.

use super::Schema;

/// Each text of the documents that draft 07 replaces, and its replacement: the draft, and the sentence that VS Code and
/// its kin show where a value does not fit.
const WORDS: [(&str, &str); 2] = [
    (
        "\"https://json-schema.org/draft/2020-12/schema\"",
        "\"http://json-schema.org/draft-07/schema#\"",
    ),
    ("\"x-expected\": \"", "\"errorMessage\": \"expected "),
];

impl Schema {
    /// The schema document in the form of draft 07, as text. It gives every document the verdict
    /// that [`Schema::source`] gives.
    pub fn draft07(self) -> String {
        WORDS
            .iter()
            .fold(self.source().to_owned(), |text, (word, other)| {
                text.replace(word, other)
            })
    }
}
