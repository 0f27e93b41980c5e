//! The simulated log in fair weather passes the suite.

use log_suite::ModelBench;

log_suite::conformance!(ModelBench::default());
