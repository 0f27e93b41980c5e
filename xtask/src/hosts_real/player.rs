//! One process of `cargo xtask hosts-real` in its namespace: a broker or a host.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::net::Net;
use super::{COUNT, HOSTS, addresses, clock};

/// One process in its namespace.
pub(super) struct Player {
    pub(super) name: String,
    command: Vec<String>,
    log: PathBuf,
    namespace: String,
    process: Option<Child>,
}

impl Player {
    pub(super) fn broker(net: &Net, keep: &Path, index: usize) -> Result<Player, String> {
        let name = broker_name(index);
        let routes: Vec<String> = (0..COUNT)
            .map(|index| format!("\"nats://{}:6222\"", net.address(index)))
            .collect();
        let address = net.address(index);
        let config = format!(
            "server_name: {name}\nlisten: \"{address}:4222\"\nhttp: \"{}\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always }}\n\
             cluster {{ name: ledgers, listen: \"{address}:6222\", routes: [{}] }}\n",
            monitor(net, index),
            keep.join(&name).display(),
            routes.join(", ")
        );
        let file = keep.join(format!("{name}.conf"));
        std::fs::write(&file, config).map_err(|error| error.to_string())?;
        let program = settled_tests::broker::program();
        Ok(Player {
            command: vec![
                program.display().to_string(),
                "--config".to_owned(),
                file.display().to_string(),
            ],
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(index),
            name,
            process: None,
        })
    }

    pub(super) fn host(net: &Net, keep: &Path, index: usize, rate: u64) -> Player {
        let name = HOSTS[index].to_owned();
        let directory = keep.join(&name);
        let program = std::env::current_exe().expect("this program has a path");
        let words = [
            &program.display().to_string(),
            "hosts-real-host",
            "--name",
            &name,
            "--servers",
            &addresses(net),
            "--directory",
            &directory.display().to_string(),
            "--rate",
            &rate.to_string(),
        ];
        Player {
            command: words.map(str::to_owned).to_vec(),
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(COUNT + index),
            name,
            process: None,
        }
    }

    /// Starts the real daemon, with a settable clock.
    pub(super) fn daemon(net: &Net, keep: &Path, index: usize) -> Result<Player, String> {
        let name = HOSTS[index].to_owned();
        let program = settled_tests::binaries::directory().join("settled-host");
        let root = keep.join(&name).display().to_string();
        let program = program.display().to_string();
        let mut command = clock::of(keep, &name)?;
        command.extend([&program, "--root", &root, "serve"].map(str::to_owned));
        Ok(Player {
            command,
            log: keep.join(format!("{name}.log")),
            namespace: net.namespace(COUNT + index),
            name,
            process: None,
        })
    }

    pub(super) fn start(&mut self) -> Result<(), String> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(|error| error.to_string())?;
        let again = log.try_clone().map_err(|error| error.to_string())?;
        // `ip netns exec` and `env` exec the program, so that signals reach it.
        let process = Command::new("ip")
            .args(["netns", "exec", &self.namespace])
            .args(&self.command)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again)
            .spawn()
            .map_err(|error| format!("ip: {error}"))?;
        self.process = Some(process);
        Ok(())
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = self.process.as_ref().map(Child::id);
        let id = id.and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
    }

    pub(super) fn wait(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }

    /// Returns how it ended, if it was started and ended by itself.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut()?.try_wait().ok().flatten()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.signal(Signal::KILL);
        self.wait();
    }
}

pub(super) fn broker_name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// Returns the address of a broker's monitoring pages.
pub(super) fn monitor(net: &Net, index: usize) -> String {
    format!("{}:8222", net.address(index))
}
