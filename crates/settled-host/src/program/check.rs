//! `settled host check`: checks what the log promises, and whether this host fits. `settled doctor` runs it in a
//! workspace that shares its ledger.

use std::path::Path;

use serde::Serialize;
use settled_host::jetstream::{MESSAGE_BYTES_ENOUGH, too_old};
use settled_host::keys::HostKey;
use settled_host::monitoring::{BrokerVars, varz};
use settled_host::place::{HostDirectory, LogPlace};
use spool::log::{Head, Log, LogError};
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use workspace::config::{SharedLog, is_same_policy};
use workspace::index::LedgerIndex;
use workspace::operator_alerts::{self, AlertKind};
use workspace::shell::settled;

use super::wait::Wait;
use super::{HostContext, member};

/// The default port of a broker's monitoring page.
const MONITOR_PORT: u16 = 8222;

/// `settled host check`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host check
  settled host check --monitor broker.example.org:8222")]
pub(super) struct CheckArgs {
    /// The monitoring addresses of the brokers, separated by commas [default: port 8222 of each broker]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    monitor: Vec<String>,
}

/// All findings. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct Findings {
    findings: Vec<Finding>,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Finding {
    /// `ok`, `note` or `wrong`.
    state: &'static str,
    /// The finding, in one sentence.
    what: String,
    /// The fix, if one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

pub(super) fn run(args: &CheckArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let mut findings = of_this_host(root, &shared)?;
    let own = HostDirectory::of(root);
    // The ledger is read before the log's end: a daemon that serves meanwhile takes over only what the log has.
    let mirror = mirror(root)?;
    let mut followed = None;
    match LogPlace::parse(&shared.log).map_err(|error| Failure::new(Exit::Usage, &error))? {
        LogPlace::Brokers(servers) => {
            let mut holders = Vec::new();
            match own.founded(&shared) {
                Ok(founded) => {
                    holders.clone_from(&founded.servers);
                    findings.extend(of_stream(founded.replicas, &founded.wrong));
                    findings.push(of_size(founded.message_bytes_max));
                    let log = own.open(&shared);
                    let log = log.map_err(|error| super::of_place(&error))?;
                    followed = Some(follows(log, mirror, context.wait));
                }
                Err(error) => {
                    let fix = "repair the network or the broker; if the broker lost its stream, settled host republish makes it again";
                    findings.push(wrong(error.to_string(), fix));
                }
            }
            let guessed = servers
                .iter()
                .map(|server| format!("{}:{MONITOR_PORT}", server.host()));
            let monitors = if args.monitor.is_empty() {
                guessed.collect()
            } else {
                args.monitor.clone()
            };
            let seen: Vec<_> = monitors
                .iter()
                .map(|address| (&**address, varz(address)))
                .collect();
            findings.extend(
                seen.iter()
                    .flat_map(|(address, vars)| of_monitor(address, vars)),
            );
            findings.extend(of_unseen(&holders, &seen));
        }
        LogPlace::Repository(repository) => {
            let log = own.open(&shared);
            let end = match log.map(|log| follows(log, mirror, context.wait)) {
                Ok(end) => end,
                Err(error) => Err(LogError::Unreachable {
                    why: error.to_string(),
                }),
            };
            findings.extend(of_repository(&end, &repository));
            followed = Some(end);
        }
    }
    findings.extend(of_standing(root, followed, context));
    let is_wrong = findings.iter().any(|finding| finding.state == "wrong");
    context.say(&CommandOutput::new(Findings { findings }), |found| {
        let line = |finding: &Finding| {
            let fix = finding
                .fix
                .as_ref()
                .map_or_else(String::new, |fix| format!("       fix: {fix}\n"));
            format!("{:<6} {}\n{fix}", finding.state, finding.what)
        };
        found.findings.iter().map(line).collect()
    })?;
    Ok(if is_wrong {
        Exit::ActionRequired
    } else {
        Exit::Ok
    })
}

fn of_this_host(root: &Path, shared: &SharedLog) -> Result<Vec<Finding>, Failure> {
    let (fleet, host) = (member::fleet(root)?, &shared.host);
    let join = settled(&member::join_with_new_key(shared), Some(root), None);
    let mut findings = Vec::new();
    findings.push(match HostKey::load(&HostDirectory::of(root).key()) {
        Err(error) => wrong(error.to_string(), &join),
        Ok(key) if fleet.key(host) == Some(&key.public()) => {
            ok(format!("host {host} has joined with the key it has here"))
        }
        Ok(_) => wrong(
            format!("host {host} has not joined with the key it has here, or that key was retired"),
            &join,
        ),
    });
    let is_same = fleet
        .policy()
        .is_none_or(|theirs| member::policy(root).is_ok_and(|ours| is_same_policy(&ours, theirs)));
    findings.push(if is_same {
        ok("all hosts judge by the policy in settled.toml".to_owned())
    } else {
        wrong(
            "the policy in settled.toml differs from that of the other hosts".to_owned(),
            "settled host policy --take",
        )
    });
    Ok(findings)
}

/// The findings about a stream with this many replicas and these unfit settings.
fn of_stream(replicas: usize, settings: &[String]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = settings
        .iter()
        .map(|what| {
            wrong(
                format!("the stream does not keep a ledger: {what}"),
                "recreate the stream, or change it with `nats stream edit`",
            )
        })
        .collect();
    findings.push(match replicas {
        0 | 1 => note(
            "one server holds the ledger: while it is down nothing is accepted, and if its disk is lost, `settled host restore` puts a \
             mirror back"
                .to_owned(),
        ),
        2 => note("two servers hold the ledger: nothing is accepted while one of them is down".to_owned()),
        replicas => ok(format!(
            "{replicas} servers hold the ledger: it survives the loss of {}",
            (replicas - 1) / 2
        )),
    });
    findings
}

/// The finding about the broker's message size limit.
fn of_size(message_bytes_max: usize) -> Finding {
    let kib = message_bytes_max / 1024;
    if message_bytes_max >= MESSAGE_BYTES_ENOUGH {
        return ok(format!(
            "the broker takes {kib} KiB at once, which is enough for every message and packet"
        ));
    }
    note(format!(
        "the broker takes {kib} KiB at once: a larger record is refused as too_large; `max_payload: 2MB` in its configuration takes \
         every message and packet"
    ))
}

/// The findings about a broker's syncing and version, from its monitoring page.
fn of_monitor(address: &str, vars: &Result<BrokerVars, String>) -> Vec<Finding> {
    let vars = match vars {
        Ok(vars) => vars,
        Err(why) => {
            return vec![note(format!(
                "cannot see whether the broker syncs before it acknowledges: {why}; `--monitor HOST:PORT` names its page"
            ))];
        }
    };
    let mut findings = Vec::new();
    if let Some(why) = too_old(&vars.name, &vars.version) {
        let what = format!("{address}: {why}");
        findings.push(wrong(what, "upgrade that server"));
    }
    findings.push(if vars.syncs {
        ok(format!(
            "{address}: each record is on the broker's disk before it is acknowledged"
        ))
    } else {
        wrong(
            format!(
                "{address}: the broker acknowledges records that are not on its disk yet, and loses them if its machine fails"
            ),
            "set `sync_interval: always` in its `jetstream` section",
        )
    });
    findings
}

/// The finding about the servers that hold the ledger and have shown no page.
fn of_unseen(holders: &[String], seen: &[(&str, Result<BrokerVars, String>)]) -> Option<Finding> {
    let is_unseen = |holder: &&String| {
        let mut vars = seen.iter().filter_map(|(_, vars)| vars.as_ref().ok());
        !vars.any(|vars| vars.name == **holder)
    };
    let unseen: Vec<&str> = holders
        .iter()
        .filter(is_unseen)
        .map(String::as_str)
        .collect();
    // With one server, the note about its page says it.
    (holders.len() > 1 && !unseen.is_empty()).then(|| {
        note(format!(
            "not seen of {}: whether it syncs before it acknowledges, and its version; `--monitor` names the pages of all, separated by \
             commas",
            unseen.join(", ")
        ))
    })
}

/// The end of this host's ledger.
fn mirror(root: &Path) -> Result<Head, Failure> {
    let read = LedgerIndex::read(root);
    let (_, folded) = read?;
    let read = folded.verified;
    Ok(match read.records {
        0 => Head::EMPTY,
        seq => Head {
            seq,
            digest: read.last,
        },
    })
}

/// The end of a log that continues this host's ledger.
fn follows(mut log: Box<dyn Log>, mirror: Head, wait: Wait) -> Result<Head, LogError> {
    let end = wait.answer(|| log.head())?;
    if end.seq < mirror.seq {
        return Err(LogError::RolledBack {
            log: end,
            ours: mirror,
        });
    }
    wait.answer(|| log.follow(mirror))?;
    Ok(end)
}

/// The finding about whether a repository answers. A repository that does not continue the ledger answers as well.
fn of_repository(end: &Result<Head, LogError>, repository: &str) -> Option<Finding> {
    match end {
        Ok(head) => Some(ok(format!(
            "{repository} answers, with records up to {}; a push is as durable as its server makes it",
            head.seq
        ))),
        Err(
            error @ (LogError::Unreachable { .. }
            | LogError::Denied { .. }
            | LogError::TooLarge { .. }),
        ) => Some(wrong(
            format!("{repository} does not answer: {error}"),
            "repair the network or the repository",
        )),
        Err(
            LogError::RolledBack { .. }
            | LogError::Forked { .. }
            | LogError::TooNew(_)
            | LogError::Broken { .. },
        ) => None,
    }
}

/// The finding about a log that does not continue this host's ledger, or a daemon that stopped at one of its records.
fn of_standing(
    root: &Path,
    followed: Option<Result<Head, LogError>>,
    context: &HostContext,
) -> Option<Finding> {
    let mut alerts = operator_alerts::read(root).into_iter();
    let alert = alerts.find(|alert| alert.kind == AlertKind::SharedLedger);
    let frozen = alert.filter(|alert| alert.what.starts_with("frozen "));
    let [republish, restore] = ["host republish", "host restore LOG"].map(|it| context.command(it));
    match followed {
        Some(Err(error @ LogError::RolledBack { .. })) => Some(wrong(
            format!("this host is frozen, because the log lost records: {error}"),
            &format!(
                "stop the daemon and put them back with `{republish}`, or with `{restore}` if the log is gone; then start it \
                 again (docs/hosts.md, A log that lost its end)"
            ),
        )),
        Some(Err(error @ LogError::Forked { .. })) => Some(wrong(
            format!("this host is frozen, because the log has other records in the place of its own: {error}"),
            &format!(
                "stop the daemon; `{republish}` names the first record that differs, and people choose a history \
                 (docs/hosts.md, Two histories)"
            ),
        )),
        Some(Err(error @ LogError::Broken { .. })) => Some(wrong(
            format!("this host is frozen: {error}"),
            "take what is no batch of records off the log; the daemons go on by themselves (docs/hosts.md, A damaged \
             repository)",
        )),
        Some(Err(LogError::TooNew(error))) => Some(wrong(
            format!("this host is frozen: {error}"),
            "install the version of the other hosts, and restart the daemon",
        )),
        // The log continues this ledger, and the daemon stopped: at a record that breaks the rules, or before the log
        // was repaired.
        Some(
            Ok(_)
            | Err(
                LogError::Unreachable { .. }
                | LogError::Denied { .. }
                | LogError::TooLarge { .. },
            ),
        )
        | None => frozen.map(|alert| {
            wrong(
                format!("this host is {}", alert.what),
                &format!(
                    "if the log was repaired meanwhile, the daemon goes on by itself once it serves; if the message names a host \
                     that broke the rules, no host can follow this log: put the ledger into an empty one with `{restore}` (docs/hosts.md, A log that \
                     is gone)"
                ),
            )
        }),
    }
}

fn ok(what: String) -> Finding {
    Finding {
        state: "ok",
        what,
        fix: None,
    }
}

fn note(what: String) -> Finding {
    Finding {
        state: "note",
        what,
        fix: None,
    }
}

fn wrong(what: String, fix: &str) -> Finding {
    Finding {
        state: "wrong",
        what,
        fix: Some(fix.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(findings: &[Finding]) -> Vec<(&'static str, &str)> {
        let said = findings.iter();
        said.map(|finding| (finding.state, &*finding.what))
            .collect()
    }

    #[test]
    fn a_stream_is_as_safe_as_its_servers_are_many() {
        for (replicas, state, told) in [
            (0, "note", "one server holds the ledger"),
            (1, "note", "one server holds the ledger"),
            (2, "note", "two servers hold the ledger"),
            (
                3,
                "ok",
                "3 servers hold the ledger: it survives the loss of 1",
            ),
            (
                5,
                "ok",
                "5 servers hold the ledger: it survives the loss of 2",
            ),
        ] {
            let findings = of_stream(replicas, &[]);
            let [(found, what)] = said(&findings)[..] else {
                panic!("{findings:?}");
            };
            assert_eq!(found, state, "{what}");
            assert!(what.starts_with(told), "{what}");
        }
        let findings = of_stream(3, &["it can be emptied".to_owned()]);
        assert_eq!(
            said(&findings)[0],
            (
                "wrong",
                "the stream does not keep a ledger: it can be emptied"
            )
        );
        assert!(findings[0].fix.is_some());
        assert_eq!(findings[1].state, "ok");
    }

    #[test]
    fn a_broker_takes_every_record_or_is_told_how() {
        let enough = of_size(MESSAGE_BYTES_ENOUGH);
        assert_eq!(enough.state, "ok");
        let kib = MESSAGE_BYTES_ENOUGH / 1024;
        // Twice a message of 256 KiB and its packet, each written with escapes, and 128 KiB for names.
        assert_eq!(kib, 1_664);
        let what = format!("the broker takes {kib} KiB at once, which is enough");
        assert!(enough.what.starts_with(&what), "{}", enough.what);
        let less = of_size(MESSAGE_BYTES_ENOUGH - 1);
        assert_eq!(less.state, "note");
        assert!(less.what.contains("max_payload: 2MB"), "{}", less.what);
        // The size that the fix suggests passes the check.
        assert_eq!(of_size(2 * 1024 * 1024).state, "ok");
    }

    fn vars(name: &str, version: &str, syncs: bool) -> Result<BrokerVars, String> {
        Ok(BrokerVars {
            name: name.to_owned(),
            version: version.to_owned(),
            syncs,
        })
    }

    #[test]
    fn a_broker_that_acknowledges_before_it_syncs_or_is_too_old_is_wrong() {
        for (vars, states) in [
            (vars("n1", "2.15.1", true), &["ok"][..]),
            (vars("n1", "2.15.1", false), &["wrong"]),
            (vars("n1", "2.11.9", true), &["wrong", "ok"]),
            (Err("127.0.0.1: no port".to_owned()), &["note"]),
        ] {
            let findings = of_monitor("127.0.0.1:8222", &vars);
            let found: Vec<_> = findings.iter().map(|finding| finding.state).collect();
            assert_eq!(found, states, "{findings:?}");
            for finding in findings {
                assert!(finding.what.contains("127.0.0.1"), "{}", finding.what);
            }
        }
    }

    #[test]
    fn a_server_that_holds_the_ledger_and_shows_no_page_is_named() {
        let holders = ["n1", "n2", "n3"].map(str::to_owned);
        let seen = [
            ("a:8222", vars("n1", "2.15.1", true)),
            ("b:8222", Err("b:8222: no route".to_owned())),
        ];
        let finding = of_unseen(&holders, &seen).expect("two are not seen");
        assert_eq!(finding.state, "note");
        assert!(
            finding.what.starts_with("not seen of n2, n3: "),
            "{}",
            finding.what
        );
        let all = holders
            .each_ref()
            .map(|name| ("a:8222", vars(name, "2.15.1", true)));
        assert!(of_unseen(&holders, &all).is_none());
    }
}
