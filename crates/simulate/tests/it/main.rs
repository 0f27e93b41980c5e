//! The scenarios of the project, and what people read of a scenario and of a replay.

mod printed;
mod scenarios;
