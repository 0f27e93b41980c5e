//! Runs validation commands in a checkout, so that the ledger can record how they went.

use std::io;
use std::path::Path;
use std::time::Duration;

use git::Repository;
use review::ObservedRun;
use runner::validation;

/// Runs the commands one after another. The recorded commit is the one checked out before: no commit contains what a
/// command changes in the checkout.
pub fn observe(
    commands: &[String],
    directory: &Path,
    limit: Duration,
) -> io::Result<Vec<ObservedRun>> {
    let head = Repository::at(directory).clean_head();
    let run = |command: &String| {
        let mut shell = validation::shell(command);
        shell.current_dir(directory);
        let end = validation::run(shell, limit)?;
        Ok(ObservedRun {
            command: command.clone(),
            exit: end.exit,
            duration_ms: end.duration_ms,
            output: end.output,
            head: head.clone(),
        })
    };
    commands.iter().map(run).collect()
}
