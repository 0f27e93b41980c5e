//! The runtime of a log, with a thread of its own. The daemon that owns the log has a runtime as well, and inside of one
//! nobody may wait in another or drop it.

use std::future::Future;

use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that may be used and dropped anywhere.
pub(super) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// Starts it.
    pub(super) fn start() -> std::io::Result<OwnRuntime> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("ledger")
            .enable_all()
            .build()?;
        Ok(OwnRuntime(Some(runtime)))
    }

    pub(super) fn handle(&self) -> &Handle {
        self.runtime().handle()
    }

    /// Waits for an answer, on a thread that is in no runtime. To start one takes a hundredth of what an answer takes.
    pub(super) fn block_on<T: Send>(&self, answer: impl Future<Output = T> + Send) -> T {
        let runtime = self.runtime();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| runtime.block_on(answer));
            waiting
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
