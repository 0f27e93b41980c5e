//! The facts about a message besides its bytes: its packet, and the side of the daemon it was found on.

/// The findings packet that a message names, as the caller found it. Opening it is the caller's business.
#[derive(Clone, Debug)]
pub enum PacketInput<'a> {
    /// Nobody looked, for want of a workspace: the rules about the packet are left out, with a warning.
    NotLooked,
    /// The message names none.
    NotNamed,
    /// There is no such file.
    Missing,
    /// The path leads to something that must not be read; the text says to what.
    Unsafe(String),
    /// The file is larger than a packet may be.
    TooLarge,
    /// Its bytes, read once.
    Bytes(&'a [u8]),
}

/// The side of the daemon on which a message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Before the daemon: nobody but an agent can have written it.
    Outbox,
    /// Behind the daemon, which may have written it itself.
    Inbox,
}
