//! Real brokers: `nats-server` from the Python package index, alone or as a cluster of three that replicate everything.
//! They sync before they acknowledge, listen on loopback, store in a directory of the test, and end with it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{peer, read, wait, write};

/// One `nats-server`; dropping it kills it.
pub struct Broker {
    name: String,
    config: PathBuf,
    /// The port for clients.
    pub port: u16,
    /// The port of its monitoring pages.
    pub monitor: u16,
    process: Option<Child>,
}

impl Broker {
    /// Starts a single broker.
    pub fn alone(directory: &Path) -> Broker {
        Broker::with(directory, "")
    }

    /// Starts a single broker with more lines of config.
    pub fn with(directory: &Path, more: &str) -> Broker {
        let [port, monitor] = ports();
        let mut broker = Broker::configured(directory, "n1", [port, monitor], more);
        broker.start();
        broker
    }

    /// Starts a broker that acknowledges before it syncs.
    pub fn careless(directory: &Path) -> Broker {
        let [port, monitor] = ports();
        let mut broker = Broker::configured(directory, "n1", [port, monitor], "");
        let text = read(&broker.config).replace(", sync_interval: always", "");
        write(&broker.config, &text);
        broker.start();
        broker
    }

    /// Starts a cluster of three and waits until it has a leader.
    pub fn cluster(directory: &Path) -> [Broker; 3] {
        let all: [u16; 9] = ports();
        let routes: Vec<String> = all[6..]
            .iter()
            .map(|port| format!("\"nats://127.0.0.1:{port}\""))
            .collect();
        let routes = routes.join(", ");
        let mut brokers = [0, 1, 2].map(|index| {
            let name = format!("n{}", index + 1);
            let more = format!(
                "cluster {{ name: ledgers, listen: \"127.0.0.1:{}\", routes: [{routes}] }}\n",
                all[6 + index]
            );
            Broker::configured(directory, &name, [all[index], all[3 + index]], &more)
        });
        for broker in &mut brokers {
            broker.start();
        }
        wait::until("a leader of the cluster", || {
            brokers.iter().all(|broker| {
                broker.jsz().is_some_and(|jsz| {
                    jsz["meta_cluster"]["leader"].is_string()
                        && jsz["meta_cluster"]["cluster_size"] == 3
                })
            })
        });
        brokers
    }

    fn configured(directory: &Path, name: &str, [port, monitor]: [u16; 2], more: &str) -> Broker {
        let store = directory.join(name);
        let config = directory.join(format!("{name}.conf"));
        let text = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always }}\n{more}",
            store.display()
        );
        write(&config, &text);
        Broker {
            name: name.to_owned(),
            config,
            port,
            monitor,
            process: None,
        }
    }

    /// Returns the address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts or restarts the broker, and waits until it accepts clients.
    pub fn start(&mut self) {
        self.spawn();
        wait::until(&format!("broker {} to answer", self.name), || {
            self.jsz().is_some() && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Starts the broker without waiting for it.
    pub fn spawn(&mut self) {
        let log = self.config.with_extension("log");
        let process = Command::new(program())
            .arg("--config")
            .arg(&self.config)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the installed nats-server can be run");
        self.process = Some(process);
    }

    /// Kills the broker, as a power cut would end the process.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is our child");
            process.wait().expect("it is our child");
        }
    }

    /// Stops or continues the broker with a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = self.process.as_ref().expect("it runs");
        let id = i32::try_from(process.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("it is not zero");
        rustix::process::kill_process(id, signal).expect("it is our child");
        // A signal takes a moment to arrive, and until then the broker still answers.
        let is_stopped = || {
            let stat = read(format!("/proc/{}/stat", process.id()));
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        if signal == rustix::process::Signal::STOP {
            wait::until(&format!("broker {} to stop", self.name), is_stopped);
        }
    }

    /// Returns the page about the state of its JetStream; `None` if it does not answer.
    pub fn jsz(&self) -> Option<Value> {
        settled_host::monitoring::jsz(&format!("127.0.0.1:{}", self.monitor)).ok()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the program, installed once per build folder.
pub fn program() -> PathBuf {
    peer::environment().join("bin/nats-server")
}

/// Ports on which nobody listens at the moment.
fn ports<const N: usize>() -> [u16; N] {
    // Hold all of them until the last is chosen, so that they differ.
    let held = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}
