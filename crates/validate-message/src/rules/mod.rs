//! The rules, one file for each part of a message.

pub(crate) mod across;
pub(crate) mod body;
mod document;
pub(crate) mod envelope;
pub(crate) mod packet;
mod unknown;

pub(crate) use document::{Document, dotted};
