//! From a position inside a scalar's text to a position in the scalar's file.

use super::quoted::Quoted;
use crate::place::Place;

/// The position of a text's lines in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Line for line: the text is the file itself, or a literal block in it. Both numbers are added to a 0-based line
    /// or column.
    Lines {
        /// Lines of the file before the first line of the text.
        first: u32,
        /// Columns cut off every line of the text.
        indent: u32,
    },
    /// The text was folded, unescaped or joined: every position is that of the whole scalar.
    Whole(Place),
}

impl Frame {
    /// The text is the file.
    pub(crate) const FILE: Self = Self::Lines {
        first: 0,
        indent: 0,
    };

    /// Returns the place in the file of a 0-based line and column of the text.
    pub(crate) fn place(self, line: u32, column: u32) -> Place {
        match self {
            Self::Lines { first, indent } => Place {
                line: first + line + 1,
                column: indent + column + 1,
            },
            Self::Whole(place) => place,
        }
    }

    /// Returns the frame of a literal block inside this text, whose decoded text begins at the 0-based line `first` of
    /// this text and had `indent` columns cut off.
    pub(crate) fn inner(self, first: u32, indent: u32) -> Self {
        match self {
            Self::Lines {
                first: f,
                indent: i,
            } => Self::Lines {
                first: f + first,
                indent: i + indent,
            },
            Self::Whole(place) => Self::Whole(place),
        }
    }
}

/// The position of a text in its file while the text is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout<'q> {
    /// According to its frame.
    Frame(Frame),
    /// Between quotes on one line.
    Quoted(&'q Quoted),
}

impl Layout<'_> {
    /// Returns the place in the file of a 0-based line and column of the text.
    pub(crate) fn place(self, line: u32, column: u32) -> Place {
        match self {
            Self::Frame(frame) => frame.place(line, column),
            Self::Quoted(quoted) => quoted.place(line, column),
        }
    }

    /// Returns the frame of a literal block inside this text, which begins at `place`.
    pub(crate) fn inner(self, first: u32, indent: u32, place: Place) -> Frame {
        match self {
            Self::Frame(frame) => frame.inner(first, indent),
            Self::Quoted(_) => Frame::Whole(place),
        }
    }

    /// True if lines of the text are lines of the file.
    pub(crate) fn keeps_lines(self) -> bool {
        matches!(self, Self::Frame(Frame::Lines { .. }))
    }

    /// True if every position is that of the whole scalar.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Frame(Frame::Whole(_)))
    }
}

impl From<Frame> for Layout<'_> {
    fn from(frame: Frame) -> Self {
        Self::Frame(frame)
    }
}
