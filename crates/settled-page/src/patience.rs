//! Ends connections that send nothing or too little: any process on this machine can connect, and this one may have
//! only a few open files.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The time for a whole request, from its first byte to the answer's, and between two requests. Waiting for an order
/// takes up to 20 s, and an open page gets something every 15 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// A listener whose connections have a deadline.
pub(crate) struct Patient<L>(pub(crate) L);

impl<L: Listener> Listener for Patient<L> {
    type Io = Limited<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (io, address) = self.0.accept().await;
        (Limited::new(io, PATIENCE), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A connection with a deadline, which the first byte of a request and each byte of an answer postpone.
pub(crate) struct Limited<T> {
    io: T,
    patience: Duration,
    deadline: Pin<Box<Sleep>>,
    is_asking: bool,
}

impl<T> Limited<T> {
    fn new(io: T, patience: Duration) -> Self {
        Self {
            io,
            patience,
            deadline: Box::pin(sleep(patience)),
            is_asking: false,
        }
    }

    fn put_off(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.patience);
    }

    fn written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.is_asking = false;
            self.put_off();
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Limited<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if read.is_pending() && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if buffer.filled().len() > before && !self.is_asking {
            self.is_asking = true;
            self.put_off();
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Limited<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, bytes);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use tokio::net::UnixStream;

    use super::*;

    async fn read(limited: &mut Limited<UnixStream>) -> Result<(), io::ErrorKind> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let read = poll_fn(|context| Pin::new(&mut *limited).poll_read(context, &mut buffer));
        read.await.map_err(|error| error.kind())
    }

    async fn write(io: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
        let written = poll_fn(|context| Pin::new(&mut *io).poll_write(context, bytes)).await;
        assert_eq!(written.ok(), Some(bytes.len()));
    }

    #[tokio::test]
    async fn whoever_says_nothing_is_cut_off_when_the_time_is_over() {
        let (_silent, ours) = UnixStream::pair().expect("two ends");
        let mut limited = Limited::new(ours, Duration::ZERO);
        assert_eq!(read(&mut limited).await, Err(io::ErrorKind::TimedOut));
    }

    #[tokio::test]
    async fn whoever_has_said_nothing_yet_is_waited_for_and_gains_no_time() {
        let (_silent, ours) = UnixStream::pair().expect("two ends");
        let mut limited = Limited::new(ours, Duration::from_secs(3_600));
        let connected = limited.deadline.deadline();
        for _ in 0..2 {
            let mut byte = [0];
            let mut buffer = ReadBuf::new(&mut byte);
            let mut context = Context::from_waker(Waker::noop());
            let read = Pin::new(&mut limited).poll_read(&mut context, &mut buffer);
            assert!(read.is_pending(), "{read:?}");
            assert_eq!(limited.deadline.deadline(), connected);
        }
    }

    #[tokio::test]
    async fn a_byte_now_and_then_buys_no_time_and_an_answer_does() {
        let (mut slow, ours) = UnixStream::pair().expect("two ends");
        let mut limited = Limited::new(ours, Duration::from_secs(3_600));
        write(&mut slow, b"GET").await;
        let connected = limited.deadline.deadline();
        assert_eq!(read(&mut limited).await, Ok(()));
        let asked = limited.deadline.deadline();
        assert!(asked > connected);
        assert_eq!(read(&mut limited).await, Ok(()));
        assert_eq!(read(&mut limited).await, Ok(()));
        assert_eq!(limited.deadline.deadline(), asked);
        write(&mut limited, b"HTTP").await;
        assert!(limited.deadline.deadline() > asked);
        let answered = limited.deadline.deadline();
        write(&mut slow, b"G").await;
        assert_eq!(read(&mut limited).await, Ok(()));
        assert!(limited.deadline.deadline() > answered);
    }
}
