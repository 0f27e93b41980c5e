//! The line between a host and a log, which can lose what is sent or what is answered.

use spool::log::{Appended, Head, Log, LogError, Ring, Signed};

/// A log at the end of a line.
pub struct Line {
    log: Box<dyn Log>,
    loses: Option<Loss>,
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    Request,
    Answer,
}

impl Line {
    /// A line that loses nothing yet.
    pub fn to(log: Box<dyn Log>) -> Line {
        Line { log, loses: None }
    }

    /// Loses the next append before it reaches the log.
    pub fn lose_request(&mut self) {
        self.loses = Some(Loss::Request);
    }

    /// Loses the answer to the next append, which the log has carried out.
    pub fn lose_answer(&mut self) {
        self.loses = Some(Loss::Answer);
    }
}

impl Log for Line {
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        let unknown = |what: &str| Ok(Appended::Unknown(format!("the line lost the {what}")));
        match self.loses.take() {
            None => self.log.append(batch),
            Some(Loss::Request) => unknown("request"),
            Some(Loss::Answer) => {
                self.log.append(batch)?;
                unknown("answer")
            }
        }
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.log.follow(from)
    }

    fn ring(&mut self, ring: Ring) {
        self.log.ring(ring);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}
