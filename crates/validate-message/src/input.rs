//! The facts about a message besides its bytes: its packet, and the side of the daemon on which it was found.

/// The findings packet that a message names, as the caller found it. The caller opens it.
#[derive(Clone, Debug)]
pub enum PacketInput<'a> {
    /// The caller has no workspace to look in: the rules about the packet are skipped, with a warning.
    NotLooked,
    /// The message names no packet.
    NotNamed,
    /// There is no such file.
    Missing,
    /// The path leads to something that must not be read; the text names it.
    Unsafe(String),
    /// The file is larger than a packet may be.
    TooLarge,
    /// Its bytes, read once.
    Bytes(&'a [u8]),
}

/// The side of the daemon on which a message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Before the daemon: only an agent can have written it.
    Outbox,
    /// After the daemon, which may have written it itself.
    Inbox,
}
