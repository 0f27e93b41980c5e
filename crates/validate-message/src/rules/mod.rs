//! The rules, one file for each part of a message.

pub(crate) mod body;
pub(crate) mod consistency;
mod document;
pub(crate) mod envelope;
pub(crate) mod gate;
mod misplaced;
mod nulls;
pub(crate) mod packet;
mod suggestions;
mod suspicious;
mod unknown;
mod walk;

pub(crate) use document::{Document, dotted};
pub(crate) use misplaced::MisplacedFields;
