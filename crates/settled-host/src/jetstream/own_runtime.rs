//! The runtime of a log, with a thread of its own. The daemon that owns the log may run inside another runtime, where
//! blocking on this one or dropping it would panic.

use std::future::Future;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that can be used and dropped anywhere.
pub(super) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
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

    /// Waits for a future, on a thread that is in no runtime. Starting the thread takes a hundredth of the time of an
    /// answer.
    pub(super) fn block_on<T: Send>(&self, answer: impl Future<Output = T> + Send) -> T {
        let runtime = self.runtime();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| runtime.block_on(answer));
            waiting
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Waits like [`OwnRuntime::block_on`] for a future that the runtime's own thread runs: no other thread has to start,
    /// be woken and end.
    pub(super) fn wait_for<T: Send + 'static>(
        &self,
        answer: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (give, answered) = mpsc::sync_channel(1);
        self.handle().spawn(async move {
            let _ = give.send(answer.await);
        });
        answered
            .recv()
            .expect("the runtime runs each future to its end")
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
