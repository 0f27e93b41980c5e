//! The JSON Schemas of `schemas/`: for each kind of document its demands and its shape (which field is a number, the
//! description of a field for people). Both come from the text of the schema, once per process.

mod breach;
mod demands;
mod draft07;
mod pattern;
mod shape;

pub use breach::{Breach, Step};
pub use shape::Shape;
pub(crate) use shape::Typing;

use std::sync::OnceLock;

use serde_json::Value;

use crate::envelope::{MessageType, ReviewKind};
use demands::Demands;

/// The kinds of document that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The envelope of every message.
    Envelope,
    /// The body of a `review_request`.
    ReviewRequest,
    /// The body of a `review_feedback`.
    ReviewFeedback,
    /// The body of a `review_addressed`.
    ReviewAddressed,
    /// The body of a `review_lgtm`.
    ReviewLgtm,
    /// A findings packet.
    FindingsPacket,
    /// A packet with the files a change touches.
    ChangesPacket,
    /// A refusal's report.
    Report,
}

impl Schema {
    /// Every schema.
    pub const ALL: &[Self] = &[
        Self::Envelope,
        Self::ReviewRequest,
        Self::ReviewFeedback,
        Self::ReviewAddressed,
        Self::ReviewLgtm,
        Self::FindingsPacket,
        Self::ChangesPacket,
        Self::Report,
    ];

    /// Returns the schema of the body of a message of that type; `None` if the body is free text.
    pub fn of_body(kind: MessageType) -> Option<Self> {
        kind.review().map(Self::of_review)
    }

    /// Returns the schema of the body of a review message.
    pub fn of_review(kind: ReviewKind) -> Self {
        match kind {
            ReviewKind::Request => Self::ReviewRequest,
            ReviewKind::Feedback => Self::ReviewFeedback,
            ReviewKind::Addressed => Self::ReviewAddressed,
            ReviewKind::Lgtm => Self::ReviewLgtm,
        }
    }

    /// Returns the schema's name, which is its file's name without `.schema.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::ReviewRequest => "review_request",
            Self::ReviewFeedback => "review_feedback",
            Self::ReviewAddressed => "review_addressed",
            Self::ReviewLgtm => "review_lgtm",
            Self::FindingsPacket => "findings_packet",
            Self::ChangesPacket => "changes_packet",
            Self::Report => "report",
        }
    }

    /// Returns the schema document as text.
    pub fn source(self) -> &'static str {
        match self {
            Self::Envelope => include_str!("../../../schemas/envelope.schema.json"),
            Self::ReviewRequest => include_str!("../../../schemas/review_request.schema.json"),
            Self::ReviewFeedback => include_str!("../../../schemas/review_feedback.schema.json"),
            Self::ReviewAddressed => include_str!("../../../schemas/review_addressed.schema.json"),
            Self::ReviewLgtm => include_str!("../../../schemas/review_lgtm.schema.json"),
            Self::FindingsPacket => include_str!("../../../schemas/findings_packet.schema.json"),
            Self::ChangesPacket => include_str!("../../../schemas/changes_packet.schema.json"),
            Self::Report => include_str!("../../../schemas/report.schema.json"),
        }
    }

    /// Returns the shape of its documents.
    pub fn shape(self) -> &'static Shape {
        &self.compiled().0
    }

    /// Returns every breach of the schema in the document; several may share one value. Stops soon after the first
    /// thousand.
    pub fn breaches(self, document: &Value) -> Vec<Breach> {
        self.compiled().1.breaches(document)
    }

    /// Returns the shape and the demands, compiled from one parse of the text, once per process.
    fn compiled(self) -> &'static (Shape, Demands) {
        static COMPILED: [OnceLock<(Shape, Demands)>; 8] = [const { OnceLock::new() }; 8];
        COMPILED[self as usize].get_or_init(|| {
            let document = serde_json::from_str(self.source()).expect("a schema of ours is JSON");
            (Shape::of(&document), Demands::of(&document))
        })
    }
}
