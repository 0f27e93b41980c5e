//! The stream that holds the ledgers: the first host that joins creates it, the others check it.

use std::time::{Duration, Instant};

use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{ConnectOptions, ServerAddr};
use spool::chain;
use spool::log::LogError;

use super::LedgerName;
use super::link::denied;

/// The oldest server that docs/hosts.md allows.
const SERVER_MIN: [u32; 2] = [2, 12];

/// The time a cluster may take to create a stream, which includes the election of a leader.
const MADE: Duration = Duration::from_secs(10);

/// The pause after a cluster could not place the stream yet.
const AGAIN: Duration = Duration::from_millis(250);

/// An existing stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founded {
    /// The number of servers that hold each record.
    pub replicas: usize,
    /// The most bytes that the server accepts in one message.
    pub message_bytes_max: usize,
    /// The settings that are unfit for a ledger, one sentence each.
    pub wrong: Vec<String>,
    /// The names of the servers that hold it.
    pub servers: Vec<String>,
}

/// Creates the stream if it does not exist, with `replicas` replicas or, by default, one for each server of the
/// cluster, at most three. An existing stream stays unchanged.
pub async fn found(
    servers: Vec<ServerAddr>,
    options: ConnectOptions,
    place: &LedgerName,
    replicas: Option<usize>,
) -> Result<Founded, LogError> {
    let broker = Broker::connect(servers, options).await?;
    if let Ok(founded) = broker.read_stream(place).await {
        return Ok(founded);
    }
    let wanted = replicas.unwrap_or(if broker.is_cluster { 3 } else { 1 });
    let end = Instant::now() + MADE;
    loop {
        match broker.context.create_stream(config(place, wanted)).await {
            Ok(stream) => {
                return Ok(broker.looked_at(stream.cached_info()));
            }
            Err(error) if is_too_early(&error) && Instant::now() < end => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(unreachable(&error)),
        }
    }
}

/// Looks at the stream, and fails if it does not exist: a new one would look like a log that lost every record.
pub async fn existing(
    servers: Vec<ServerAddr>,
    options: ConnectOptions,
    place: &LedgerName,
) -> Result<Founded, LogError> {
    Broker::connect(servers, options)
        .await?
        .read_stream(place)
        .await
}

/// A connected broker with JetStream.
struct Broker {
    context: Context,
    name: String,
    is_cluster: bool,
    message_bytes_max: usize,
}

impl Broker {
    async fn connect(
        servers: Vec<ServerAddr>,
        options: ConnectOptions,
    ) -> Result<Broker, LogError> {
        let client = options
            .connection_timeout(Duration::from_secs(3))
            .connect(servers)
            .await;
        let client = client.map_err(|error| match error.kind() {
            async_nats::ConnectErrorKind::Authentication
            | async_nats::ConnectErrorKind::AuthorizationViolation => denied(&chain(&error)),
            async_nats::ConnectErrorKind::ServerParse
            | async_nats::ConnectErrorKind::Dns
            | async_nats::ConnectErrorKind::TimedOut
            | async_nats::ConnectErrorKind::Tls
            | async_nats::ConnectErrorKind::Io
            | async_nats::ConnectErrorKind::MaxReconnects => unreachable(&error),
        })?;
        let info = client.server_info();
        if !info.jetstream {
            let why = format!(
                "server {} {} has no JetStream",
                info.server_name, info.version
            );
            return Err(LogError::Unreachable { why });
        }
        if let Some(why) = too_old(&info.server_name, &info.version) {
            return Err(LogError::Unreachable { why });
        }
        let mut context = async_nats::jetstream::new(client);
        context.set_timeout(MADE);
        Ok(Broker {
            context,
            name: info.server_name,
            is_cluster: info.cluster.is_some(),
            message_bytes_max: info.max_payload,
        })
    }

    async fn read_stream(&self, place: &LedgerName) -> Result<Founded, LogError> {
        let stream = self.context.get_stream(place.stream()).await;
        let missing = |error| {
            let name = place.stream();
            let why = format!("stream {name}: {}", chain(&error));
            LogError::Unreachable { why }
        };
        let stream = stream.map_err(missing)?;
        Ok(self.looked_at(stream.cached_info()))
    }

    fn looked_at(&self, info: &Info) -> Founded {
        let mut founded = looked_at(&info.config, self.message_bytes_max);
        founded.servers = match &info.cluster {
            Some(cluster) => {
                let replicas = cluster.replicas.iter().map(|peer| peer.name.clone());
                cluster.leader.iter().cloned().chain(replicas).collect()
            }
            None => vec![self.name.clone()],
        };
        founded.servers.sort();
        founded
    }
}

/// True if a server of this version is older than [`SERVER_MIN`]. One whose version we cannot read is not refused.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        return false;
    };
    [major, minor] < SERVER_MIN
}

/// Says so of a server that is too old for a ledger.
pub fn too_old(name: &str, version: &str) -> Option<String> {
    let [major, minor] = SERVER_MIN;
    is_too_old(version).then(|| {
        format!(
            "server {name} is nats-server {version}, and a ledger needs {major}.{minor} or newer"
        )
    })
}

fn unreachable(error: &dyn std::error::Error) -> LogError {
    LogError::Unreachable { why: chain(error) }
}

/// Returns true if the cluster refused because it has only just started. Its leader places replicas on servers that
/// have reported their free space, and they report a moment after the election.
fn is_too_early(error: &CreateStreamError) -> bool {
    let CreateStreamErrorKind::JetStream(refused) = error.kind() else {
        return false;
    };
    let early = [
        ErrorCode::CLUSTER_NO_PEERS,
        ErrorCode::CLUSTER_NOT_AVAILABLE,
    ];
    early.contains(&refused.error_code())
}

/// The settings of a stream from which nothing is ever removed, and whose leader alone answers.
fn config(place: &LedgerName, replicas: usize) -> Config {
    Config {
        name: place.stream(),
        description: Some("ledgers of Settled: one subject for each workspace".to_owned()),
        subjects: vec![format!("led.{}.>", place.shard)],
        storage: StorageType::File,
        num_replicas: replicas,
        // A full stream refuses new messages instead of dropping old ones.
        discard: DiscardPolicy::New,
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: -1,
        deny_delete: true,
        deny_purge: true,
        ..Config::default()
    }
}

fn looked_at(config: &Config, message_bytes_max: usize) -> Founded {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    must(
        config.storage == StorageType::File,
        "it is kept in memory and not on disk",
    );
    must(
        config.discard == DiscardPolicy::New || (config.max_bytes <= 0 && config.max_messages <= 0),
        "it forgets old records when it is full",
    );
    must(
        config.max_age.is_zero(),
        "it forgets records after some time",
    );
    must(
        config.max_messages_per_subject <= 0,
        "it forgets old records of a workspace",
    );
    must(config.deny_delete, "records can be deleted in it");
    must(config.deny_purge, "it can be emptied");
    must(!config.no_ack, "it acknowledges nothing");
    Founded {
        replicas: config.num_replicas,
        message_bytes_max,
        wrong,
        servers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Config);

    fn place() -> LedgerName {
        LedgerName {
            workspace: "team".to_owned(),
            shard: "1".to_owned(),
        }
    }

    #[test]
    fn a_server_older_than_2_12_is_too_old() {
        for (version, expected) in [
            ("2.11.9", true),
            ("1.40.0", true),
            ("2.12.0", false),
            ("2.12.0-RC.1", false),
            ("2.15.1", false),
            ("2.100.0", false),
            ("3.0.0", false),
            ("dev", false),
        ] {
            assert_eq!(is_too_old(version), expected, "{version}");
        }
    }

    #[test]
    fn a_stream_as_we_make_it_is_as_it_should_be() {
        let made = config(&place(), 3);
        assert_eq!(made.subjects, ["led.1.>"]);
        let founded = looked_at(&made, 1024);
        let expected = Founded {
            replicas: 3,
            message_bytes_max: 1024,
            wrong: Vec::new(),
            servers: Vec::new(),
        };
        assert_eq!(founded, expected);
    }

    #[test]
    fn each_setting_by_which_a_stream_forgets_is_told() {
        let told = |change: Change| {
            let mut config = config(&place(), 1);
            change(&mut config);
            looked_at(&config, 1024).wrong
        };
        let full = "it forgets old records when it is full";
        let changes: [(Change, &str); 8] = [
            (
                |config| config.storage = StorageType::Memory,
                "it is kept in memory and not on disk",
            ),
            (
                |config| (config.discard, config.max_bytes) = (DiscardPolicy::Old, 1),
                full,
            ),
            (
                |config| (config.discard, config.max_messages) = (DiscardPolicy::Old, 1),
                full,
            ),
            (
                |config| config.max_age = Duration::from_secs(1),
                "it forgets records after some time",
            ),
            (
                |config| config.max_messages_per_subject = 1,
                "it forgets old records of a workspace",
            ),
            (
                |config| config.deny_delete = false,
                "records can be deleted in it",
            ),
            (|config| config.deny_purge = false, "it can be emptied"),
            (|config| config.no_ack = true, "it acknowledges nothing"),
        ];
        for (change, what) in changes {
            assert_eq!(told(change), [what]);
        }
        // A stream without a limit drops nothing, and a full stream refuses.
        let fit: [Change; 4] = [
            |config| config.discard = DiscardPolicy::Old,
            |config| {
                config.discard = DiscardPolicy::Old;
                (config.max_bytes, config.max_messages) = (0, 0);
            },
            |config| (config.max_bytes, config.max_messages) = (1, 1),
            |config| config.max_messages_per_subject = 0,
        ];
        for change in fit {
            assert_eq!(told(change), [""; 0]);
        }
    }
}
