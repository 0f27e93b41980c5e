//! What ends a pair from outside: the signals of a terminal and of whoever stops processes. None of them ends this
//! process: what runs is ended in order, and the ledger is told why.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::signal::unix::{SignalKind, signal};

/// Whether the pair is to end, and by what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<OnceLock<&'static str>>);

impl Stop {
    /// Listens from now on, on a thread of its own.
    pub(crate) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupt, mut terminate, mut hangup) = {
            let _entered = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            )
        };
        let stop = Self::default();
        let told = stop.clone();
        std::thread::spawn(move || {
            let why = runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => "a person ended it with Ctrl-C",
                    _ = terminate.recv() => "it was told to end by SIGTERM",
                    _ = hangup.recv() => "its terminal is gone",
                }
            });
            // It is told once.
            let _ = told.0.set(why);
        });
        Ok(stop)
    }

    /// By what it is to end, if it is.
    pub(crate) fn heard(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}
