//! `settled service`: manages the file by which systemd or launchd knows the daemon.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use setup::service::{
    FileChange, InstalledFile, ResolveError, Scope, Service, ServiceError, ServiceManager,
    ServiceRequest, Work,
};
use spool::path_text::shown;

use super::answer::CommandOutput;
use super::context::{Context, Root, quoted};
use super::failure::Failure;
use crate::exit::Exit;

/// The default name of the service.
const NAME: &str = "settled";

/// The default name of the notifier's service.
const NOTIFY_NAME: &str = "settled-notify";

/// Installs, removes or inspects the service.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled service install ./mailroom --dry-run   print the file, install nothing
  sudo settled service install /srv/mailroom
  settled service install ./mailroom --user
  settled service install ./mailroom --user --notify
  settled service status ./mailroom --user")]
pub(super) struct Args {
    #[command(subcommand)]
    what: ServiceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceCommand {
    /// Write the service file and print how to start the service
    #[command(after_help = "Examples:
  settled service install ./mailroom --user
  settled service install ./mailroom --system --starts-agents --dry-run")]
    Install(Install),
    /// Remove the service file; the workspace stays
    #[command(after_help = "Examples:
  settled service uninstall ./mailroom --user")]
    Uninstall(Of),
    /// Show if the service is up to date, enabled and serving
    #[command(after_help = "Examples:
  settled service status ./mailroom --user --json | jq .data.enabled")]
    Status(Install),
}

#[derive(Debug, clap::Args)]
struct Install {
    #[command(flatten)]
    of: Of,
    /// Relax the sandbox for a daemon that starts agents: they need the network, their home and their tools
    #[arg(long, conflicts_with = "notify")]
    starts_agents: bool,
}

#[derive(Debug, clap::Args)]
struct Of {
    #[command(flatten)]
    root: Root,
    /// A system service; the default for root
    #[arg(long, conflicts_with = "user")]
    system: bool,
    /// A user service; the default for other users
    #[arg(long)]
    user: bool,
    /// A launchd file; the default on macOS
    #[arg(long)]
    launchd: bool,
    /// The notifier's service instead of the daemon's
    #[arg(long)]
    notify: bool,
    /// The service's name, unique per workspace [default: settled, or settled-notify]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Write the file to this directory instead of the supervisor's
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Change nothing
    #[arg(long)]
    dry_run: bool,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct ServiceView {
    /// `made`, `changed`, `unchanged`, `removed`; for `status`: `same`, `other`, `absent`.
    state: &'static str,
    dry_run: bool,
    file: String,
    program: String,
    root: String,
    enabled: bool,
    /// Absent if it cannot be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<bool>,
    /// The text of the file; only with `install --dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    match &args.what {
        ServiceCommand::Install(args) => install(args, context),
        ServiceCommand::Uninstall(of) => uninstall(of, context),
        ServiceCommand::Status(args) => status(args, context),
    }
}

fn install(args: &Install, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.of.root);
    let service = service(&args.of, work(args), &context)?;
    if args.of.dry_run {
        let text = service
            .text()
            .map_err(|why| failure(&ServiceError::Path(why), &service))?;
        let document = ServiceView {
            text: Some(text.clone()),
            ..document("unchanged", args.of.dry_run, &service)
        };
        context.say(&CommandOutput::new(document), |_| text)?;
        return Ok(Exit::Ok);
    }
    let state = match service.write().map_err(|error| failure(&error, &service))? {
        FileChange::Made => "made",
        FileChange::Changed => "changed",
        FileChange::Unchanged => "unchanged",
    };
    let mut answer = CommandOutput::new(document(state, args.of.dry_run, &service));
    if service.scope == Scope::System && service.owner.0 == 0 {
        answer.alert(
            "runs_as_root",
            "the workspace belongs to root, so the daemon will run as root: give it to a user of its own",
        );
    }
    for command in service.start() {
        answer.next(command, "start it, now and with the machine");
    }
    context.say(&answer, |document| {
        format!("{}  {}\n", document.state, document.file)
    })?;
    Ok(Exit::Ok)
}

fn uninstall(of: &Of, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&of.root);
    let service = service(of, work_of(of, Work::MailOnly), &context)?;
    if !of.dry_run {
        service
            .remove()
            .map_err(|error| failure(&error, &service))?;
    }
    let said = |document: &ServiceView| format!("removed  {}\n", document.file);
    context.say(
        &CommandOutput::new(document("removed", of.dry_run, &service)),
        said,
    )?;
    Ok(Exit::Ok)
}

fn status(args: &Install, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.of.root);
    let service = service(&args.of, work(args), &context)?;
    let found = service.find().map_err(|error| failure(&error, &service))?;
    let (state, said, exit) = match found {
        InstalledFile::Nothing => ("absent", "not installed", Exit::NotFound),
        InstalledFile::Same => ("same", "installed", Exit::Ok),
        InstalledFile::Other => ("other", "installed, but out of date", Exit::ActionRequired),
    };
    let mut answer = CommandOutput::new(document(state, args.of.dry_run, &service));
    if found != InstalledFile::Same {
        answer.next(context.command(&again(args)), "update it");
    } else if !service.is_enabled() {
        for command in service.start() {
            answer.next(command, "start it, now and with the machine");
        }
    }
    context.say(&answer, |document| text(document, said))?;
    Ok(exit)
}

fn text(document: &ServiceView, said: &str) -> String {
    let serving = match document.serving {
        Some(true) => "a daemon is serving",
        Some(false) => "no daemon is serving",
        None => "this user cannot see whether a daemon is serving",
    };
    let enabled = if document.enabled {
        "enabled"
    } else {
        "not enabled"
    };
    format!(
        "{said}, {enabled}; {serving}\nfile:    {}\nprogram: {}\nroot:    {}\n",
        document.file, document.program, document.root
    )
}

/// The command that installs this service.
fn again(args: &Install) -> String {
    let Of {
        root: _,
        system,
        user,
        launchd,
        notify,
        name,
        into,
        dry_run: _,
    } = &args.of;
    let told = [
        (*system, "--system"),
        (*user, "--user"),
        (*launchd, "--launchd"),
        (args.starts_agents, "--starts-agents"),
        (*notify, "--notify"),
    ];
    let mut words = vec!["service install".to_owned()];
    words.extend(
        told.iter()
            .filter(|(is_told, _)| *is_told)
            .map(|(_, option)| (*option).to_owned()),
    );
    words.extend(name.iter().map(|name| format!("--name {name}")));
    words.extend(
        into.iter()
            .map(|into| format!("--into {}", quoted(into.as_os_str()))),
    );
    words.join(" ")
}

fn work(args: &Install) -> Work {
    let daemon = if args.starts_agents {
        Work::StartsAgents
    } else {
        Work::MailOnly
    };
    work_of(&args.of, daemon)
}

fn work_of(of: &Of, daemon: Work) -> Work {
    if of.notify { Work::Notifies } else { daemon }
}

fn document(state: &'static str, dry_run: bool, service: &Service) -> ServiceView {
    ServiceView {
        state,
        dry_run,
        file: shown(&service.path()),
        program: shown(&service.program),
        root: shown(&service.root),
        enabled: service.is_enabled(),
        serving: spool::is_served(&service.root),
        text: None,
    }
}

fn service(of: &Of, work: Work, context: &Context) -> Result<Service, Failure> {
    let scope = match (of.system, of.user) {
        (true, _) => Some(Scope::System),
        (false, true) => Some(Scope::User),
        (false, false) => None,
    };
    let request = ServiceRequest {
        scope,
        kind: if of.launchd {
            ServiceManager::Launchd
        } else {
            ServiceManager::HERE
        },
        name: of
            .name
            .clone()
            .unwrap_or_else(|| if of.notify { NOTIFY_NAME } else { NAME }.to_owned()),
        directory: of.into.clone(),
        work,
    };
    Service::resolve(context.workspace()?, request).map_err(|error| unresolved(&error, context))
}

fn unresolved(error: &ResolveError, context: &Context) -> Failure {
    match error {
        ResolveError::Io { .. } => Failure::plain(Exit::Failed, error.to_string()),
        ResolveError::NoHome | ResolveError::Config(_) => Failure::new(Exit::Usage, error),
        ResolveError::OfAnotherUser { .. } => {
            let next = context.command("service install --system");
            Failure::new(Exit::Identity, error).next(format!("sudo {next}"))
        }
    }
}

/// The failure of a change, classified by who has to act.
fn failure(error: &ServiceError, service: &Service) -> Failure {
    let path = service.path();
    let look = |path: &Path| format!("cat {}", quoted(path.as_os_str()));
    match error {
        ServiceError::Path(_) => Failure::new(Exit::Usage, error),
        ServiceError::NotOurs(_) | ServiceError::OfAnother { .. } => {
            Failure::new(Exit::ActionRequired, error).next(look(&path))
        }
        ServiceError::Enabled(_) => Failure::new(Exit::ActionRequired, error).next(service.stop()),
        ServiceError::Absent(_) => Failure::new(Exit::NotFound, error),
        ServiceError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::new(Exit::Identity, error)
                .next(format!("ls -ld {}", quoted(service.directory.as_os_str())))
        }
        ServiceError::Io { .. } => Failure::new(Exit::Failed, error),
    }
}

fn name(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = (1..=64).contains(&text.len())
        && text.chars().all(is_fit)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| format!("`{text}` is not a name: 1 to 64 of A-Za-z0-9._-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        install: Install,
    }

    #[test]
    fn what_is_in_the_way_of_a_service_is_for_the_caller_or_for_root() {
        let room = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(room.path().join("agents")).expect("a workspace");
        let line = ["install", "--user", "--into", "/units", "--name", "room"];
        let line = <Line as clap::Parser>::try_parse_from(line).expect("options");
        let context = Context::of(room.path(), "codex");
        let service = service(&line.install.of, work(&line.install), &context);
        let service = service.expect("a service");
        let path = || PathBuf::from("/units/room.service");
        let io = |kind: ErrorKind| ServiceError::Io {
            path: path(),
            source: kind.into(),
        };
        let another = ServiceError::OfAnother {
            path: path(),
            root: "/other".to_owned(),
        };
        let cat = || Some("cat /units/room.service".to_owned());
        for (error, exit, next) in [
            (ServiceError::Path(String::new()), Exit::Usage, None),
            (ServiceError::NotOurs(path()), Exit::ActionRequired, cat()),
            (another, Exit::ActionRequired, cat()),
            (
                ServiceError::Enabled(path()),
                Exit::ActionRequired,
                Some(service.stop()),
            ),
            (ServiceError::Absent(path()), Exit::NotFound, None),
            (
                io(ErrorKind::PermissionDenied),
                Exit::Identity,
                Some("ls -ld /units".to_owned()),
            ),
            (io(ErrorKind::StorageFull), Exit::Temporary, None),
            (io(ErrorKind::InvalidInput), Exit::Failed, None),
        ] {
            let failure = failure(&error, &service);
            let run = failure.next.first().map(|next| next.run.clone());
            assert_eq!((failure.exit, run), (exit, next), "{error}");
        }
        let of_another = ResolveError::OfAnotherUser { owner: 1, asks: 2 };
        let failure = unresolved(&of_another, &context);
        let system = context.command("service install --system");
        assert_eq!(failure.exit, Exit::Identity);
        assert_eq!(failure.next[0].run, format!("sudo {system}"));
        assert_eq!(
            unresolved(&ResolveError::NoHome, &context).exit,
            Exit::Usage
        );
    }

    #[test]
    fn the_service_that_was_asked_about_is_installed_again_in_the_same_words() {
        let again = |line: &[&str]| {
            let words = ["status"].iter().chain(line);
            let line = <Line as clap::Parser>::try_parse_from(words).expect("options");
            super::again(&line.install)
        };
        assert_eq!(again(&[]), "service install");
        assert_eq!(again(&["--user", "--dry-run"]), "service install --user");
        assert_eq!(
            again(&["--system", "--starts-agents", "--name", "room"]),
            "service install --system --starts-agents --name room"
        );
        assert_eq!(
            again(&["--launchd", "--notify", "--into", "/a b"]),
            "service install --launchd --notify --into '/a b'"
        );
    }
}
