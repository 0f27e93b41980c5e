//! A place in a file. The reader counts; this is only the pair of numbers.

use serde::{Deserialize, Serialize};

/// A position in a text file: line and column, both from 1. Columns count characters (Unicode
/// scalar values), not bytes; a byte order mark is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ordered_by_line_then_column() {
        let place = |line, column| Place { line, column };
        assert!(place(1, 9) < place(2, 1) && place(2, 1) < place(2, 2));
        assert_eq!(place(9, 5).to_string(), "9:5");
    }
}
