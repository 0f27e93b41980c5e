//! The mailroom for AI code review: daemon and command line.
