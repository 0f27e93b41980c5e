//! `git cat-file --batch`: one process that returns the bytes of any number of blobs.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::entries;
use crate::limited_read::READ_MAX;

/// The running process.
pub(super) struct Batch {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Batch {
    pub(super) fn start() -> io::Result<Self> {
        let mut command = entries::command();
        command
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| entries::not_run(&error))?;
        let questions = child.stdin.take();
        let answers = child.stdout.take().expect("it was asked for as a pipe");
        Ok(Self {
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// Reads a blob, but no more of it than shows that it is too large.
    pub(super) fn read(&mut self, id: &str) -> io::Result<Vec<u8>> {
        let questions = self
            .questions
            .as_mut()
            .expect("it is taken when the process is dropped");
        writeln!(questions, "{id}")?;
        questions.flush()?;
        let mut head = String::new();
        self.answers.read_line(&mut head)?;
        // `<id> blob <size>`, or `<id> missing`.
        let size = head
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<u64>().ok());
        let size =
            size.ok_or_else(|| io::Error::other(format!("git says: {}", head.trim_end())))?;
        let mut bytes = Vec::new();
        self.answers
            .by_ref()
            .take(size.min(READ_MAX))
            .read_to_end(&mut bytes)?;
        // Skip the rest of the blob and its final line feed.
        io::copy(
            &mut self
                .answers
                .by_ref()
                .take(size.saturating_sub(READ_MAX) + 1),
            &mut io::sink(),
        )?;
        Ok(bytes)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Closing its input ends it; waiting leaves no zombie.
        drop(self.questions.take());
        let _ = self.child.wait();
    }
}
