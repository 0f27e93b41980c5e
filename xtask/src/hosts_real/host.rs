//! One host of `cargo xtask hosts-real`: has items, appends them to the ledger after the end that it has folded, and
//! keeps a mirror on disk. It is killed at any moment and continues from its mirror.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use clap::Args as ClapArgs;
use settled_host::JetStream;
use settled_host::access::{Access, servers};
use settled_host::jetstream::{LedgerName, found};
use spool::log::{Appended, Batch, Head, HostName, Log, LogError, Signed};
use spool::{Digest, Entry};

/// The most items in a batch.
const BATCH_MAX: u64 = 256;

/// One host of `hosts-real`
#[derive(Debug, ClapArgs)]
pub(crate) struct HostArgs {
    /// Name of the host
    #[arg(long)]
    name: HostName,
    /// Addresses of the brokers
    #[arg(long)]
    servers: String,
    /// Directory of its mirror; a file `enough` there ends the run
    #[arg(long)]
    directory: PathBuf,
    /// Items per second
    #[arg(long)]
    rate: u64,
}

fn place() -> LedgerName {
    LedgerName {
        workspace: "w".to_owned(),
        shard: "real".to_owned(),
    }
}

/// Makes the stream, once the cluster has a leader.
pub(super) fn make_stream(addresses: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let servers = servers(addresses).map_err(|error| error.to_string())?;
        let options = Access::default()
            .options()
            .map_err(|error| error.to_string())?;
        match runtime.block_on(found(servers, options, &place(), Some(3))) {
            Ok(made) if made.wrong.is_empty() => return Ok(()),
            Ok(made) => return Err(format!("{made:?}")),
            Err(error) if Instant::now() > end => return Err(error.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// The state of a host.
struct Host {
    name: HostName,
    mirror: File,
    head: Head,
    /// The number of this host's items in the ledger.
    accepted: u64,
    /// The time at which each item arrived at this host, in milliseconds since 1970.
    came: BTreeMap<u64, u64>,
    notes: File,
}

/// Serves until it is killed.
pub(crate) fn serve(args: &HostArgs) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&args.directory).map_err(text)?;
    let mut host = Host::open(args)?;
    let servers = servers(&args.servers).map_err(|error| error.to_string())?;
    let options = Access::default()
        .options()
        .map_err(|error| error.to_string())?;
    let mut log = JetStream::open(servers, options, &place()).map_err(|error| error.to_string())?;
    let (changes, changed) = mpsc::channel();
    log.on_change(Box::new(move || {
        let _ = changes.send(());
    }));
    let began = Instant::now();
    let before = host.accepted;
    let mut pending: Option<Signed> = None;
    let mut told = String::new();
    loop {
        let is_enough = args.directory.join("enough").exists();
        if !is_enough {
            let due = before + u128_to_u64(began.elapsed().as_millis()) * args.rate / 1_000;
            let now = now_ms();
            for item in host.accepted + 1..=due {
                host.came.entry(item).or_insert(now);
            }
        }
        let outcome = match pending.take() {
            Some(signed) => Some(signed),
            None => host.next_batch(),
        };
        let mut trouble = String::new();
        if let Some(signed) = outcome {
            match log.append(&signed) {
                Ok(Appended::Committed) => host.take(&signed)?,
                Ok(Appended::Moved(_)) => {}
                Ok(Appended::Unknown(why)) => {
                    trouble = why;
                    pending = Some(signed);
                }
                Err(error) => trouble = retryable(&error)?,
            }
        }
        match log.follow(host.head) {
            Ok(batches) => {
                for signed in &batches {
                    host.take(signed)?;
                }
            }
            Err(error) => trouble = retryable(&error)?,
        }
        if trouble != told {
            host.note(&format!("trouble {trouble}"))?;
            told = trouble;
        }
        let pause = Duration::from_millis(if pending.is_some() { 20 } else { 2 });
        // A ring ends the pause; several rings meanwhile count as one.
        let _ = changed.recv_timeout(pause);
        while changed.try_recv().is_ok() {}
    }
}

fn retryable(error: &LogError) -> Result<String, String> {
    if error.is_retryable() {
        Ok(error.to_string())
    } else {
        Err(format!("frozen: {error}"))
    }
}

impl Host {
    /// Continues from the mirror: its complete lines are all it knows.
    fn open(args: &HostArgs) -> Result<Host, String> {
        let text = |error: std::io::Error| error.to_string();
        let path = args.directory.join("mirror.jsonl");
        let bytes = std::fs::read(&path).unwrap_or_default();
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        let mirror = open(&path).map_err(text)?;
        mirror.set_len(whole as u64).map_err(text)?;
        let mut host = Host {
            name: args.name.clone(),
            mirror,
            head: Head::EMPTY,
            accepted: 0,
            came: BTreeMap::new(),
            notes: open(&args.directory.join("notes")).map_err(text)?,
        };
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let line = &line[..line.len() - 1];
            let entry = Entry::from_line(line).map_err(|error| error.to_string())?;
            let digest = Digest::of(line);
            host.head = Head {
                seq: entry.seq,
                digest,
            };
            host.fold(&entry);
        }
        host.note("start")?;
        Ok(host)
    }

    /// Returns the waiting items as a batch after the end.
    fn next_batch(&self) -> Option<Signed> {
        let mut bytes = Vec::new();
        let mut head = self.head;
        for (item, came) in self
            .came
            .range(self.accepted + 1..)
            .take(BATCH_MAX as usize)
        {
            let entry = Entry {
                seq: head.seq + 1,
                prev: head.digest,
                batch: self.head.seq + 1,
                host: Some(self.name.clone()),
                at: "2026-02-13T10:00:00.000Z".to_owned(),
                kind: "accepted".to_owned(),
                rules: Some(1),
                review: None,
                id: Some(format!("{}:{item}", self.name)),
                original: None,
                deliveries: Vec::new(),
                decision: serde_json::value::to_raw_value(&serde_json::json!({
                    "came": came, "text": "x".repeat(700)
                }))
                .expect("it is JSON"),
            };
            let line = entry.to_line();
            head = Head {
                seq: entry.seq,
                digest: Digest::of(&line),
            };
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
        }
        if bytes.is_empty() {
            return None;
        }
        let batch = Batch::read(bytes, self.head).expect("lines in a chain");
        Some(Signed {
            batch,
            host: self.name.clone(),
            signature: vec![0; 64],
        })
    }

    /// Adopts the part of a batch from the log that is missing here.
    fn take(&mut self, signed: &Signed) -> Result<(), String> {
        let batch = &signed.batch;
        if batch.head().seq <= self.head.seq {
            return Ok(());
        }
        if batch.head_at(self.head.seq) != Some(self.head) {
            return Err(format!("record {} does not follow", batch.after().seq + 1));
        }
        let known = self.head.seq;
        let fresh = batch.entries().iter().filter(|entry| entry.seq > known);
        let mut bytes = Vec::new();
        for entry in fresh.clone() {
            bytes.extend_from_slice(&entry.to_line());
            bytes.push(b'\n');
        }
        let written = self.mirror.write_all(&bytes);
        written
            .and_then(|()| self.mirror.sync_data())
            .map_err(|error| error.to_string())?;
        self.head = batch.head();
        let (now, is_ours) = (now_ms(), signed.host == self.name);
        for entry in fresh {
            self.fold(entry);
            let came = serde_json::from_str::<serde_json::Value>(entry.decision.get());
            let came = came.ok().and_then(|value| value["came"].as_u64());
            let waited = now.saturating_sub(came.unwrap_or(now));
            let kind = if is_ours { "accepted" } else { "arrived" };
            self.note(&format!("{kind} {waited}"))?;
        }
        Ok(())
    }

    fn fold(&mut self, entry: &Entry) {
        let id = entry.id.as_deref().unwrap_or_default();
        let item = id.rsplit_once(':').and_then(|(host, item)| {
            (host == self.name.as_str())
                .then(|| item.parse().ok())
                .flatten()
        });
        if let Some(item) = item {
            self.accepted = item;
            self.came.remove(&item);
        }
    }

    fn note(&mut self, what: &str) -> Result<(), String> {
        writeln!(self.notes, "{} {what}", now_ms()).map_err(|error| error.to_string())
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u128_to_u64(since.map_or(0, |since| since.as_millis()))
}

fn u128_to_u64(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
