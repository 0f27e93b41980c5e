//! The promises of message-schema about real documents.

mod agreement;
mod draft07;
mod oracle;
mod render;
mod slips;
