//! The time, handed in by the caller: no clock is read here, so a test sets the time.

/// The time, as the caller's clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// A clock that never goes back, in milliseconds.
    pub mono: u64,
    /// Milliseconds since 1970, UTC.
    pub wall: i64,
}
