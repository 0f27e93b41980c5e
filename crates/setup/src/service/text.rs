//! Renders the service's file: a template with paths quoted as each place needs, and as much confinement as the work
//! and the service manager allow.

use std::path::Path;

use super::{Needs, Scope, Service, ServiceManager, SharedPlace, Work};

const UNIT: &str = include_str!("unit.service");
const CONFINED: &str = include_str!("confined.conf");
const CONFINED_USER: &str = include_str!("confined_user.conf");
const AGENTS: &str = include_str!("agents.conf");
const AGENTS_USER: &str = include_str!("agents_user.conf");
const NOTIFY_UNIT: &str = include_str!("notify.service");
const NOTIFY: &str = include_str!("notify.conf");
const NOTIFY_USER: &str = include_str!("notify_user.conf");
const PLIST: &str = include_str!("settled.plist");

/// Directories that a confined service cannot see; what it needs from them is bound in.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// Directories that a confined service has to itself.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The beginning of the line that marks a file as ours, up to the path of the workspace.
const MARK: &str = "Written by `settled service install` for the workspace ";

impl Needs {
    /// True if the shared ledger is on other machines.
    fn has_network(&self) -> bool {
        match self.ledger {
            SharedPlace::Brokers | SharedPlace::Remote => true,
            SharedPlace::Unshared | SharedPlace::Directory(_) => false,
        }
    }
}

impl Service {
    /// Renders the file; fails with the reason if a path cannot be written there.
    pub fn text(&self) -> Result<String, String> {
        let [root, program] = [&self.root, &self.program].map(|path| {
            let text = path
                .to_str()
                .filter(|text| !text.chars().any(char::is_control));
            text.ok_or_else(|| {
                format!(
                    "{} is not a path that a service file can hold",
                    path.display()
                )
            })
        });
        let (root, program) = (root?, program?);
        Ok(match self.kind {
            ServiceManager::Systemd => self.unit(root, program),
            ServiceManager::Launchd => self.plist(root, program),
        })
    }

    fn unit(&self, root: &str, program: &str) -> String {
        let confinement = match (self.work, self.scope) {
            (Work::MailOnly, Scope::System) => CONFINED,
            (Work::MailOnly, Scope::User) => CONFINED_USER,
            (Work::StartsAgents, Scope::System) => AGENTS,
            (Work::StartsAgents, Scope::User) => AGENTS_USER,
            (Work::Notifies, Scope::System) => NOTIFY,
            (Work::Notifies, Scope::User) => NOTIFY_USER,
        };
        let unit = match self.work {
            Work::MailOnly | Work::StartsAgents => UNIT,
            Work::Notifies => NOTIFY_UNIT,
        };
        let families = self.families();
        let (user, group) = self.owner;
        // Paths come last, so that nothing in them is taken for a placeholder.
        unit.replace("@CONFINEMENT@", confinement)
            .replace("@PLACES@", &self.places(root, program))
            .replace("@FAMILIES@", families)
            .replace("@USER@", &user.to_string())
            .replace("@GROUP@", &group.to_string())
            .replace("@TARGET@", self.target())
            .replace("@NAME@", &self.name)
            .replace("@ROOT@", root)
            .replace("@DESCRIBED@", &root.replace('%', "%%"))
            .replace("@PATH@", &word(root))
            .replace("@DIRECTORY@", &root.replace('%', "%%"))
            .replace("@ROOT_WORD@", &word(root).replace('$', "$$"))
            .replace("@PROGRAM@", &word(program).replace('$', "$$"))
    }

    /// The settings that depend on the paths of the workspace and program and on the config.
    fn places(&self, root: &str, program: &str) -> String {
        let below = |path: &str, places: &[&str]| {
            places
                .iter()
                .any(|place| Path::new(path).starts_with(place))
        };
        let mut lines = Vec::new();
        let mut line = |text: String| lines.push(text);
        let ledger = match &self.needs.ledger {
            SharedPlace::Directory(path) => path.to_str(),
            SharedPlace::Unshared | SharedPlace::Brokers | SharedPlace::Remote => None,
        };
        let is_at_home = [Some(root), Some(program), ledger]
            .into_iter()
            .flatten()
            .any(|path| below(path, &HOMES));
        if self.needs.ledger == SharedPlace::Remote {
            line("# git reads its keys and credentials in the home of this user.".to_owned());
            line("ProtectHome=read-only".to_owned());
        } else {
            // Binding a path below a home needs an empty home to put it in; otherwise no home is safer.
            line(format!(
                "ProtectHome={}",
                if is_at_home { "tmpfs" } else { "yes" }
            ));
            if below(root, &HOMES) {
                line(format!("BindPaths={}", word(root)));
            }
            if below(program, &HOMES) {
                line(format!("BindReadOnlyPaths={}", word(program)));
            }
            if below(program, &HOMES) && self.needs.ledger != SharedPlace::Unshared {
                // `settled serve` becomes the program beside it.
                let host = Path::new(program).with_file_name("settled-host");
                line(format!(
                    "BindReadOnlyPaths={}",
                    word(&host.to_string_lossy())
                ));
            }
        }
        if let Some(ledger) = ledger {
            line("# The ledger that several hosts share is in a repository here.".to_owned());
            line(format!("ReadWritePaths={}", word(ledger)));
            if below(ledger, &HOMES) {
                line(format!("BindPaths={}", word(ledger)));
            }
        }
        let is_temporary = [Some(root), Some(program), ledger]
            .into_iter()
            .flatten()
            .any(|path| below(path, &TEMPORARY));
        line(format!(
            "PrivateTmp={}",
            if is_temporary { "no" } else { "yes" }
        ));
        if self.needs.sees_users {
            line(
                "# Agents have separate users, and the owner of a file says which agent wrote it."
                    .to_owned(),
            );
            line("PrivateUsers=no".to_owned());
        } else {
            line("PrivateUsers=yes".to_owned());
        }
        lines.extend(self.network());
        lines.join("\n")
    }

    /// The families of sockets that the daemon and what it starts may open.
    fn families(&self) -> &'static str {
        if self.needs.loopback || self.needs.has_network() {
            "AF_UNIX AF_INET AF_INET6"
        } else {
            "AF_UNIX"
        }
    }

    /// The settings for the network: none of it, the loopback network, or all of it for a shared ledger.
    fn network(&self) -> Vec<String> {
        let families = self.families();
        let lines: &[&str] = if self.needs.has_network() {
            &[
                "# The shared ledger is on other machines, and their addresses may change; a drop-in can narrow this.",
                "PrivateNetwork=no",
            ]
        } else if self.needs.loopback {
            &[
                "IPAddressDeny=any",
                "# Metrics are read from the loopback network; a unix socket needs none of it.",
                "PrivateNetwork=no",
                "IPAddressAllow=localhost",
            ]
        } else {
            &["IPAddressDeny=any", "PrivateNetwork=yes"]
        };
        let families = format!("RestrictAddressFamilies={families}");
        let lines = lines.iter().map(|line| (*line).to_owned());
        lines.chain([families]).collect()
    }

    fn plist(&self, root: &str, program: &str) -> String {
        let user = match self.scope {
            Scope::System => {
                let name = workspace::users::name(self.owner.0);
                let name = xml(&name.unwrap_or_else(|| format!("#{}", self.owner.0)));
                format!("  <key>UserName</key>\n  <string>{name}</string>\n")
            }
            Scope::User => String::new(),
        };
        let log = spool::Layout::new(&self.root)
            .own()
            .join(match self.work {
                Work::MailOnly | Work::StartsAgents => "daemon.log",
                Work::Notifies => "notify.log",
            })
            .to_string_lossy()
            .into_owned();
        PLIST
            .replace("@USER_NAME@", &user)
            .replace("@NAME@", &self.name)
            .replace(
                "@VERB@",
                match self.work {
                    Work::MailOnly | Work::StartsAgents => "serve",
                    Work::Notifies => "notify",
                },
            )
            .replace("@LOG@", &xml(&log))
            .replace("@PROGRAM@", &xml(program))
            .replace("@ROOT@", &xml(root))
    }
}

/// The workspace for which a service's file was written, as the file shows it; none if the file is not ours.
pub(super) fn root_of(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .find_map(|line| line.split_once(MARK).map(|(_, root)| root))?;
    Some(line.strip_suffix(" -->").unwrap_or(line))
}

/// The path as a file for this service manager shows it.
pub(super) fn shown(kind: ServiceManager, path: &Path) -> String {
    let path = path.to_string_lossy();
    match kind {
        ServiceManager::Systemd => path.into_owned(),
        ServiceManager::Launchd => xml(&path),
    }
}

/// Quotes a word for systemd, and escapes `%`, which begins a specifier.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@=,".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%");
    format!("\"{escaped}\"")
}

/// Escapes text for XML, including comments, which two hyphens would end.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace("--", "-&#45;")
}
