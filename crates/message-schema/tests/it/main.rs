//! What message-schema promises of real documents; one binary.

mod agreement;
mod draft07;
mod oracle;
mod render;
