//! The sandbox of a command, with the real `bwrap`: a reviewer that tries to write, to read a key and to connect to a
//! server.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use settled_tests::mailroom::Mailroom;
use settled_tests::{debian, list, read, sh, wait, write};
use tempfile::TempDir;

use super::Room;
use super::trees::{Code, ask, ran};

/// A key of the daemon's user, in a world-readable file and in the daemon's environment.
const KEY: &str = "sk-of-the-user";

/// The user's belongings besides the code: a key, and a server to which a command could send it.
struct Home {
    directory: TempDir,
    server: TcpListener,
}

impl Home {
    fn new() -> Self {
        let directory = settled_tests::scratch();
        write(directory.path().join("key"), KEY);
        let server = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        Self { directory, server }
    }

    fn key(&self) -> String {
        self.directory.path().join("key").display().to_string()
    }

    fn port(&self) -> u16 {
        self.server.local_addr().expect("an address").port()
    }
}

/// The `PATH` with `bwrap`, which is unpacked into the build folder if the machine has none.
fn path() -> String {
    let path = std::env::var("PATH").expect("a path");
    let bwrap = debian::program("bwrap", "bubblewrap");
    match bwrap.parent().filter(|folder| folder.is_absolute()) {
        Some(folder) => format!("{}:{path}", folder.display()),
        None => path,
    }
}

/// The output of the only command, after its review has ended as it should.
fn printed(room: &Room, head: &str, phase: &str) -> (Value, String) {
    let daemon = room
        .mailroom
        .spawn_with(&[("USERS_KEY", KEY), ("PATH", &path())]);
    ask(room, head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(
        review["phase"],
        phase,
        "{review} {}",
        errors(&room.mailroom)
    );
    let folder = list(room.mailroom.root().join(".settled/runs")).remove(0);
    (review, read(folder.join("stdout")))
}

fn errors(mailroom: &Mailroom) -> String {
    let folders = list(mailroom.root().join(".settled/runs"));
    let logs = folders.iter().map(|folder| folder.join("stderr"));
    logs.filter(|log| log.exists()).map(read).collect()
}

/// Tries everything and prints what worked.
fn attempts(home: &Home, root: &Path) -> String {
    format!(
        "cat a; git log --format=%s; head -c 8 {{brief}}; echo; tail -n 1
         (echo changed > a) && echo wrote the code
         (echo changed > {{brief}}) && echo wrote its brief
         (echo changed > .git/../x || echo changed > {{tree}}/x) && echo made a file
         cat {key} && echo read a file
         echo $USERS_KEY | grep sk- && echo read a variable
         tr '\\0' '\\n' < /proc/1/environ | grep -q USERS_KEY && echo read the environment of another
         git config --get remote.o.url && echo read the config
         ls {root}/agents {root}/.settled/ledger && echo saw the workspace
         cat {root}/settled.toml && echo read the settings
         (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo called home
         for set in $(find /proc/sys /proc/irq /proc/bus /proc/fs -type f -perm -u+w); do
             (exec 3>>$set) && echo \"can set $set\" && break
         done
         (touch /x || touch /etc/x) && echo wrote between the mounts
         for room in ~ /tmp; do
             [ $(df --output=size -k $room | tail -n 1) -le 1048576 ] || echo may fill the memory
         done
         touch ~/x /tmp/x && ls ~ && echo PASS",
        key = home.key(),
        root = root.display(),
        port = home.port(),
    )
}

#[test]
fn a_command_in_a_sandbox_reads_the_code_and_writes_nothing_reads_no_key_and_calls_nobody() {
    let (code, home) = (Code::new(), Home::new());
    let settings = "git config remote.o.url https://sk-of-the-user@example.com/o.git";
    sh(code.directory.path(), settings);
    for (more, expected) in [
        ("sandbox = true", "reviewed\n1\n0\nschema_v\n"),
        (
            "sandbox = true\ncheckout = \"workdir\"",
            "half-done\n2\n1\n0\nschema_v\n",
        ),
    ] {
        let room = code.room("part", "", more);
        let script = attempts(&home, room.mailroom.root());
        let config = room.mailroom.root().join("settled.toml");
        let text = read(&config).replace(
            "'sh', '-c', ''''''",
            &format!("'bash', '-c', '''{script}'''"),
        );
        write(&config, &text);
        let (_, printed) = printed(&room, &code.head, "approved");
        let said = printed
            .strip_prefix(expected)
            .unwrap_or_else(|| panic!("{printed}"));
        let (prompt, rest) = said.split_once('\n').expect("lines");
        assert!(!prompt.is_empty(), "the prompt comes through: {printed}");
        assert_eq!(rest, "x\nPASS\n", "{more}: {}", errors(&room.mailroom));
        let status = sh(code.directory.path(), "cat part/a; git status --porcelain");
        assert_eq!(status, "half-done\n M part/a\n?? part/b");
    }
    home.server.set_nonblocking(true).expect("a socket");
    assert!(home.server.accept().is_err(), "somebody called");
}

#[test]
fn what_the_section_names_is_read_and_reached_and_nothing_else() {
    let (code, friend, other) = (Code::new(), Home::new(), Home::new());
    let server = friend.server.try_clone().expect("a socket");
    let serving = std::thread::spawn(move || {
        let (mut caller, _) = server.accept().expect("a caller");
        caller.write_all(b"welcome\n").expect("it listens");
    });
    let more = format!(
        "sandbox = {{ network = [\"localhost:{}\"], reads = [\"{}\"], env = [\"USERS_KEY\"] }}",
        friend.port(),
        friend.key()
    );
    let script = format!(
        "cat {}; echo; cat {} || echo no; echo $USERS_KEY
         call() {{
             exec 3<>/dev/tcp/127.0.0.1/${{HTTPS_PROXY##*:}}
             printf \"$1 localhost:$2 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n\" >&3
             cat <&3 | tr -d \"\\r\" | grep -e ^HTTP -e welcome
         }}
         call CONNECT {friend}; call CONNECT {other}; call GET {friend}; echo PASS",
        friend.key(),
        other.key(),
        friend = friend.port(),
        other = other.port(),
    );
    let room = Room::with_command(
        &format!("'bash', '-c', '''{script}'''"),
        &format!(
            "workdir = '''{}'''\n{more}",
            code.directory.path().display()
        ),
    );
    let (_, printed) = printed(&room, &code.head, "approved");
    assert_eq!(
        printed,
        "sk-of-the-user\nno\nsk-of-the-user\nHTTP/1.1 200 Connection established\nwelcome\n\
         HTTP/1.1 403 Forbidden\nHTTP/1.1 405 Method Not Allowed\nPASS\n",
        "{}",
        errors(&room.mailroom)
    );
    serving.join().expect("it was called");
    other.server.set_nonblocking(true).expect("a socket");
    assert!(other.server.accept().is_err(), "somebody called");
}

#[test]
fn validation_commands_run_in_the_sandbox_as_well_where_they_may_write_the_code() {
    let (code, home) = (Code::new(), Home::new());
    let commands = format!(
        "sandbox = true\n[gate]\nvalidation_commands = [\"echo dirt > part/a && test ! -e {}\"]",
        home.key()
    );
    let room = code.room("part", "cat a; echo PASS", &commands);
    let (_, printed) = printed(&room, &code.head, "approved");
    assert_eq!(printed, "reviewed\nPASS\n", "the tree is made anew");
    let runs = ran(&room);
    assert_eq!(runs[0]["exit"], 0, "{runs:?}");
}

#[test]
fn a_command_that_hangs_in_a_sandbox_is_ended_with_all_it_started() {
    let code = Code::new();
    let room = code.room(
        "",
        "sleep 4242 & sleep 4242",
        "sandbox = { network = [\"localhost\"] }",
    );
    let daemon = room.mailroom.spawn_with(&[("PATH", &path())]);
    room.ask_with(
        "86",
        "request-1",
        2,
        8,
        &format!("declared_head: {}", code.head),
    );
    let (review, _) = room.end();
    assert_eq!(review["reason"], "reviewer_budget_exceeded", "{review}");
    let is_left = || {
        list("/proc").iter().any(|process| {
            std::fs::read(process.join("cmdline")).is_ok_and(|line| line == b"sleep\x004242\x00")
        })
    };
    wait::until("nothing of it to run", || !is_left());
    drop(daemon);
}

#[test]
fn without_bwrap_the_command_is_not_started_at_all() {
    let code = Code::new();
    let room = code.room(
        "",
        "echo started >> $FAKE_NOTES; echo PASS",
        "sandbox = true",
    );
    let programs = settled_tests::scratch();
    for name in ["sh", "git"] {
        let path = sh(programs.path(), &format!("command -v {name}"));
        std::os::unix::fs::symlink(path, programs.path().join(name)).expect("a link");
    }
    let path = programs.path().display().to_string();
    let daemon = room.mailroom.spawn_with(&[("PATH", &path)]);
    ask(&room, &code.head);
    let (review, _) = room.end();
    drop(daemon);
    assert_eq!(review["reason"], "invocation_failed", "{review}");
    assert_eq!(review["failed"]["cause"], "missing", "{review}");
    let why = review["failed"]["why"].as_str().unwrap_or_default();
    assert!(why.contains("`bwrap`: No such file"), "{review}");
    assert_eq!(room.starts(), 0);
}

#[test]
fn a_workspace_that_is_the_code_itself_is_not_seen_from_inside() {
    let script =
        "ls {root}; ls {root}/agents {root}/.settled/ledger; cat {root}/settled.toml; echo PASS";
    let room = Room::with_command(&format!("'sh', '-c', '''{script}'''"), "sandbox = true");
    let (_, printed) = printed(&room, "abc1234", "approved");
    let said = printed.split_once("settled.toml\n").map(|(_, said)| said);
    let seen = format!("{}/agents:\nPASS\n", room.mailroom.root().display());
    assert_eq!(said, Some(&*seen), "{printed} {}", errors(&room.mailroom));
}

#[test]
fn doctor_says_what_the_sandbox_lacks() {
    let room = Room::with_command("'sh'", "sandbox = true");
    let check = |path: &str| {
        let output = std::process::Command::new(settled_tests::binaries::settled())
            .args(["doctor", "--json"])
            .arg(room.mailroom.root())
            .env("PATH", path)
            .output()
            .expect("it runs");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checks = said["data"]["findings"].as_array().expect("a list").clone();
        let found = checks.into_iter().find(|check| check["check"] == "sandbox");
        found.map(|check| check["state"].as_str().expect("a word").to_owned())
    };
    let path = path();
    assert_eq!(check(&path).as_deref(), Some("ok"));
    assert_eq!(check("/nonexistent").as_deref(), Some("wrong"));
}
