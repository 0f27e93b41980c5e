//! A repository behind a server on loopback, which a test can stop: it answers nothing then, and nobody is refused, as where a
//! network drops packets.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::{sh, wait};

/// `git-daemon` with one repository, `ledger.git`; dropping it kills it.
pub(super) struct GitDaemon {
    process: Child,
    port: u16,
}

impl GitDaemon {
    pub(super) fn start(directory: &Path) -> GitDaemon {
        sh(directory, "git init --quiet --bare ledger.git");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        // `git daemon` would start it as a child, which no signal of this test reaches.
        let program = sh(directory, "git --exec-path");
        let process = Command::new(Path::new(program.trim()).join("git-daemon"))
            .args(["--export-all", "--enable=receive-pack", "--reuseaddr"])
            .args(["--listen=127.0.0.1", &format!("--port={port}")])
            .arg(format!("--base-path={}", directory.display()))
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("git-daemon can be run");
        wait::until("the repository's server to listen", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        GitDaemon { process, port }
    }

    pub(super) fn url(&self) -> String {
        format!("git://127.0.0.1:{}/ledger.git", self.port)
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).expect("a process id");
        let id = Pid::from_raw(id).expect("it is not zero");
        kill_process(id, signal).expect("it is our child");
    }

    /// The time that a look at the repository takes now.
    pub(super) fn look(&self, directory: &Path) -> Duration {
        let began = Instant::now();
        sh(directory, &format!("git ls-remote --refs {}", self.url()));
        began.elapsed()
    }
}

impl Drop for GitDaemon {
    fn drop(&mut self) {
        // One that is stopped ends as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
