//! The simulated log in fair weather does what every log has to do.

use log_suite::ModelBench;

log_suite::conformance!(ModelBench::default());
