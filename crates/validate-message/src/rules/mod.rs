//! The rules, one file for each part of a message.

pub(crate) mod across;
mod advice;
pub(crate) mod body;
mod document;
mod doubtful;
pub(crate) mod envelope;
mod gate;
pub(crate) mod packet;
mod strays;
mod unknown;

pub(crate) use document::{Document, dotted};
