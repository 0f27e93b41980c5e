//! The places in a document, and the ways in which it breaks its schema.

/// One step from a document's root to a value in it. A walk, which rarely has a place to report, borrows the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step<Name = String> {
    /// Into the field of a mapping.
    Key(Name),
    /// To an item of a list, from 0.
    Index(usize),
}

impl Step<&str> {
    /// Returns the path that these steps are.
    pub fn path(steps: &[Self]) -> Vec<Step> {
        let step = |step: &Self| match *step {
            Step::Key(name) => Step::Key(name.to_owned()),
            Step::Index(index) => Step::Index(index),
        };
        steps.iter().map(step).collect()
    }
}

/// One way in which a document breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breach {
    /// A required field is not there.
    Missing {
        /// The mapping it is missing from.
        at: Vec<Step>,
        /// The field.
        field: String,
    },
    /// A field that the schema does not know and does not admit.
    Unknown {
        /// The mapping it is in.
        at: Vec<Step>,
        /// The field.
        field: String,
    },
    /// A value does not fit the schema.
    Broken {
        /// The value.
        at: Vec<Step>,
        /// The JSON Schema keyword that refuses it.
        keyword: &'static str,
    },
}
