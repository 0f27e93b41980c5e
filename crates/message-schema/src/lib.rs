//! The contents of Settled's files: ids, limits, the envelope, the four review bodies, the findings packet,
//! and the reader that turns bytes into them with a place for every value.
//!
//! Pure: no disk, no clock, no environment. `validate-message` decides whether a message is *correct*; `review` decides
//! what it *does*.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod body;
mod code;
mod coerce;
pub mod envelope;
mod flow;
mod from_text;
pub mod hex;
pub mod id;
pub mod limit;
pub mod line;
mod malformed;
mod message;
pub mod packet;
mod place;
mod render;
mod report;
pub mod schema;
pub mod spend;
pub mod yaml;

pub use code::{Code, Finder};
pub use coerce::coerce;
pub use flow::flow;
pub use from_text::from_text;
pub use malformed::Malformed;
pub use message::{Message, ReadBody, parse, parse_packet};
pub use place::Place;
pub use render::{
    double_quoted, json_for_yaml, read_document, render_document, render_draft, render_lines,
    render_message, render_packet, stands_in_a_block,
};
pub use report::{Level, NotAReport, REPORT_VERSION, Report, ReportedViolation};
pub use schema::Schema;
