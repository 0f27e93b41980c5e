//! Rows in which a person, not the daemon, starts the program: with our hooks, or through `settled pair`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, read, seed, write};

use super::bench::Scene;
use super::programs::{Form, Program};
use super::rows::Walls;
use super::under_daemon::config;

/// What plays one side of a pair.
struct PairSide<'c> {
    command: &'c str,
    /// The form of its output.
    output: &'static str,
}

impl<'c> PairSide<'c> {
    fn script(command: &'c str) -> Self {
        Self {
            command,
            output: "text",
        }
    }
}

impl Scene<'_> {
    pub(super) fn install_hooks(&self, mailroom: &Mailroom, into: &Path) -> Result<(), String> {
        let into = into.display().to_string();
        let me = self.program.word();
        let output = mailroom.run(&["hook", "install", me, "--dir", &into, "--agent", me]);
        if output.status.success() {
            Ok(())
        } else {
            Err(said(&output))
        }
    }

    /// Makes each call of a hook leave a line, so that an uncalled hook is not taken for a silent one.
    pub(super) fn log_hooks(&self, home: &Path) {
        let script = self.place.join("hook-settled");
        let text = format!(
            "#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
            self.place.join("hooks.log").display(),
            binaries::settled().display()
        );
        write(&script, &text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).expect("it is ours");
        for file in [
            ".claude/settings.json",
            ".codex/hooks.json",
            ".gemini/settings.json",
        ] {
            let file = home.join(file);
            if file.exists() {
                let settled = binaries::settled().display().to_string();
                write(
                    &file,
                    &read(&file).replace(&settled, &script.display().to_string()),
                );
            }
        }
    }

    /// A person starts the program in a project with our hooks while mail waits.
    pub(super) fn hooks(&self) -> Result<(), String> {
        let me = self.program.word();
        let mailroom = Mailroom::on_disk(&["author", me]);
        self.install_hooks(&mailroom, &self.code)?;
        mailroom.post(
            "author",
            "q.yaml",
            &seed::note("question", "q-1", "author", me, "Which?"),
        );
        mailroom.once();
        let environment = self.environment("hook");
        let line = match self.program {
            Program::Claude => "claude -p --output-format stream-json --verbose",
            Program::Codex => "codex exec --json --dangerously-bypass-hook-trust --enable hooks -",
            Program::Gemini => "GEMINI_CLI_TRUST_WORKSPACE=true gemini --output-format stream-json",
            Program::OpenCode => return Err("it has none".to_owned()),
        };
        let trust = format!(
            "\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            self.code.display()
        );
        if self.program == Program::Codex {
            let config = self.place.join("home/.codex/config.toml");
            let text = read(&config) + &trust;
            write(&config, &text);
        }
        let output = self.by_hand(&format!("echo 'Do the work' | {line}"), &environment);
        write(self.place.join("by-hand.txt"), &said(&output));
        let requests = self.bench.server.requests(&self.name);
        let told = |request: &String| request.matches("settled: 1 message waits for you").count();
        match requests.iter().map(told).collect::<Vec<_>>()[..] {
            [at_start, at_end] if at_start > 0 && at_end > at_start => Ok(()),
            ref found => Err(format!(
                "told {found:?} times in its requests, expected one more in the second"
            )),
        }
    }

    /// A person checks that the set-up works.
    pub(super) fn doctor(&self) -> Result<(), String> {
        let me = self.program.word();
        let mailroom = Mailroom::on_disk(&["author", me]);
        let workdir = self.code.display().to_string();
        let section = self.program.set_up();
        let section = section.section(Form::Plain, Walls::None, &workdir);
        let section = section.expect("each program has this form");
        write(
            mailroom.root().join("settled.toml"),
            &config(me, section).to_string(),
        );
        let mut command = settled_tests::mailroom::settled();
        let output = command
            .args(["doctor", "--agents", me, "--root"])
            .arg(mailroom.root())
            .envs(self.environment("probe"))
            .stdin(Stdio::null())
            .output()
            .expect("settled can be run");
        write(self.place.join("doctor.txt"), &said(&output));
        if self.was_led_away() {
            return Err("it called the service that the repository's `.env` names".to_owned());
        }
        if output.status.success() {
            Ok(())
        } else {
            Err(said(&output))
        }
    }

    fn by_hand(&self, line: &str, environment: &[(String, String)]) -> Output {
        Command::new("timeout")
            .args(["100", "sh", "-c", line])
            .current_dir(&self.code)
            .env_remove("SETTLED_RUN")
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell")
    }

    /// The program plays the author of a pair, a script the reviewer.
    pub(super) fn pair_author(&self) -> Result<(), String> {
        let set_up = self.program.set_up();
        let author = PairSide {
            command: set_up.pair("author"),
            output: self.program.word(),
        };
        let reviewer = PairSide::script("grep -q hello hello.txt && echo PASS");
        self.pair(&author, &reviewer, self.environment("author"))
    }

    /// The program plays the reviewer of a pair, a script the author.
    pub(super) fn pair_reviewer(&self) -> Result<(), String> {
        let mut environment = self.environment("reviewer");
        let home = self.place.join("home");
        self.program.keep_in_file(&home, &mut environment);
        let author = PairSide::script("echo hello > hello.txt; echo DONE");
        let set_up = self.program.set_up();
        let reviewer = PairSide {
            command: set_up.pair("reviewer"),
            output: self.program.word(),
        };
        self.pair(&author, &reviewer, environment)?;
        // No option of Gemini CLI makes it ignore the GEMINI.md of a directory that it may read.
        if self.program == Program::Gemini {
            return Ok(());
        }
        Self::asked_well(&self.bench.server.requests(&self.name))
    }

    fn pair(
        &self,
        author: &PairSide<'_>,
        reviewer: &PairSide<'_>,
        environment: Vec<(String, String)>,
    ) -> Result<(), String> {
        let mailroom = Mailroom::on_disk(&["one", "other"]);
        let task = self.place.join("task.md");
        write(&task, "Put a greeting into hello.txt.\n");
        let mut command = settled_tests::mailroom::settled();
        let output = command
            .args([
                "pair",
                "--author",
                "one",
                "--reviewer",
                "other",
                "--json",
                "--max-iterations",
                "2",
            ])
            .args([
                "--run-seconds",
                "100",
                "--author-command",
                author.command,
                "--reviewer-command",
                reviewer.command,
            ])
            .args([
                "--author-output",
                author.output,
                "--reviewer-output",
                reviewer.output,
            ])
            .arg("--task")
            .arg(&task)
            .arg("--workdir")
            .arg(&self.code)
            .arg("--root")
            .arg(mailroom.root())
            .envs(environment)
            .stdin(Stdio::null())
            .output()
            .expect("settled can be run");
        self.keep_runs(&mailroom);
        let text = said(&output);
        write(self.place.join("pair.txt"), &text);
        if !text.contains("\"state\":\"complete\"") || !text.contains("\"iteration\":1") {
            let last = text.lines().last().unwrap_or_default().to_owned();
            return Err(format!(
                "the pair does not complete in one iteration: {last}"
            ));
        }
        if read(self.code.join("hello.txt")).trim() != "hello" {
            return Err("the author did not write the file".to_owned());
        }
        if self.was_led_away() {
            return Err("it called the service that the repository's `.env` names".to_owned());
        }
        Ok(())
    }
}
