//! The logs of this room and its program, in one binary: most of these tests wait for each other's timers, not for a core.

#[path = "../../../../tests/executable.rs"]
mod executable;
mod git;
mod jetstream;
mod programs;
#[path = "../../../../tests/sh.rs"]
mod sh;
