//! The promises of message-schema about real documents.

mod agreement;
mod draft07;
mod grammar;
mod kinds;
mod oracle;
mod render;
mod shapes;
mod slips;
