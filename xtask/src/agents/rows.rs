//! The rows of the table: what each program plays, and the required result.

use super::programs::{Form, Program};

/// One row.
pub(super) struct Row {
    pub name: &'static str,
    /// The claim, in the words of the page.
    pub claim: &'static str,
    pub play: Play,
}

/// The scene of a row.
pub(super) enum Play {
    /// The daemon starts the program for a request.
    Runner(Runner),
    /// Hooks installed by `settled hook install` report waiting mail to a program that a person starts.
    Hooks,
    /// `settled doctor --agents` starts the program once.
    Doctor,
    /// The author of a pair; the reviewer is a script.
    Author,
    /// The reviewer of a pair; the author is a script.
    Reviewer,
}

/// A request to the program, and the required result.
pub(super) struct Runner {
    pub script: &'static str,
    pub form: Form,
    pub seconds: u32,
    pub turns: u32,
    /// True if hooks are installed and other mail waits.
    pub hooks: bool,
    pub phase: &'static str,
    /// The reason of the escalation.
    pub reason: &'static str,
    /// Words of the notice to the author.
    pub told: &'static [&'static str],
    pub starts: usize,
    /// True if the ledger must record that the program read the changed file.
    pub reads: bool,
    /// True if no request may contain the instructions of the repository.
    pub instructions: bool,
    pub walls: Walls,
    /// True if the attempts of the script `subcommands` must fail.
    pub is_fenced: bool,
    /// True if the program's own permissions are switched off.
    pub is_unbound: bool,
    /// `Some(true)` if the attempts of the script `attack` must succeed, `Some(false)` if they must fail.
    pub worked: Option<bool>,
}

/// The confinement of the program, besides its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walls {
    None,
    /// The `sandbox` in its section. It reaches its service over TLS, like the real one.
    Sandbox,
}

const RUNNER: Runner = Runner {
    script: "pass",
    form: Form::Plain,
    seconds: 120,
    turns: 20,
    hooks: false,
    phase: "approved",
    reason: "",
    told: &[],
    starts: 1,
    reads: false,
    instructions: false,
    walls: Walls::None,
    is_fenced: false,
    is_unbound: false,
    worked: None,
};

pub(super) const ROWS: [Row; 22] = [
    Row {
        name: "pass",
        claim: "reads its brief and the changed file and ends with `PASS`: the review is approved after one start, and the ledger records that the file was read",
        play: Play::Runner(Runner {
            reads: true,
            ..RUNNER
        }),
    },
    Row {
        name: "instructions",
        claim: "the same, and no request to the model contains the repository's CLAUDE.md, AGENTS.md or GEMINI.md, from the top directory or from that of the file it reads; nor does it call the service that the repository's `.env` names",
        play: Play::Runner(Runner {
            instructions: true,
            ..RUNNER
        }),
    },
    Row {
        name: "findings",
        claim: "prints findings as one JSON object: the daemon sends them as `review_feedback`",
        play: Play::Runner(Runner {
            script: "findings",
            phase: "fixing",
            ..RUNNER
        }),
    },
    Row {
        name: "fenced",
        claim: "prints the findings in one code fence: the same",
        play: Play::Runner(Runner {
            script: "fenced",
            phase: "fixing",
            ..RUNNER
        }),
    },
    Row {
        name: "schema",
        claim: "gets the schema of the answer and answers by it",
        play: Play::Runner(Runner {
            script: "findings",
            form: Form::Schema,
            phase: "fixing",
            ..RUNNER
        }),
    },
    Row {
        name: "shell",
        claim: "runs `settled lgtm` from its own shell",
        play: Play::Runner(Runner {
            script: "shell",
            form: Form::Shell,
            ..RUNNER
        }),
    },
    Row {
        name: "feedback",
        claim: "sends a finding by `settled feedback` from its own shell",
        play: Play::Runner(Runner {
            script: "feedback",
            form: Form::Shell,
            phase: "fixing",
            ..RUNNER
        }),
    },
    Row {
        name: "subcommands",
        claim: "from the same shell it does not set an agent up by `settled agent add`, approve what another agent was asked for, or redirect a command's output into the repository",
        play: Play::Runner(Runner {
            script: "subcommands",
            form: Form::Shell,
            is_fenced: true,
            ..RUNNER
        }),
    },
    Row {
        name: "mcp",
        claim: "reads its brief and answers with findings through the tools of `settled mcp`; its sandbox stays as narrow as in `pass`",
        play: Play::Runner(Runner {
            script: "mcp",
            form: Form::Mcp,
            phase: "fixing",
            ..RUNNER
        }),
    },
    Row {
        name: "sandbox",
        claim: "the same as `pass` in [a sandbox](runner.md#the-sandbox) without a network, from which one host can be reached: its service, by TLS",
        play: Play::Runner(Runner {
            reads: true,
            walls: Walls::Sandbox,
            ..RUNNER
        }),
    },
    Row {
        name: "attack",
        claim: "with its own permissions off and no sandbox: from its shell it writes the code, reads a key in the home directory and calls a server on this machine",
        play: Play::Runner(Runner {
            script: "attack",
            is_unbound: true,
            worked: Some(true),
            ..RUNNER
        }),
    },
    Row {
        name: "walls",
        claim: "the same in the sandbox: it does none of the three",
        play: Play::Runner(Runner {
            script: "attack",
            is_unbound: true,
            worked: Some(false),
            walls: Walls::Sandbox,
            ..RUNNER
        }),
    },
    Row {
        name: "turns",
        claim: "never ends: the daemon ends it after its 3 turns and escalates the review",
        play: Play::Runner(Runner {
            script: "turns",
            turns: 3,
            phase: "escalated",
            reason: "reviewer_budget_exceeded",
            ..RUNNER
        }),
    },
    Row {
        name: "seconds",
        claim: "takes too long: the daemon ends it after 30 s and escalates the review",
        play: Play::Runner(Runner {
            script: "seconds",
            // On a busy machine the slowest program calls its model after 15 s.
            seconds: 30,
            phase: "escalated",
            reason: "reviewer_budget_exceeded",
            ..RUNNER
        }),
    },
    Row {
        name: "error",
        claim: "its service answers 400: the daemon starts it twice, escalates the review and names the cause in the notice",
        play: Play::Runner(Runner {
            script: "error",
            phase: "escalated",
            reason: "invocation_failed",
            told: &["scripted error", ".settled/runs/"],
            starts: 2,
            ..RUNNER
        }),
    },
    Row {
        name: "unauthorized",
        claim: "its service answers 401: the notice says that it is not logged in",
        play: Play::Runner(Runner {
            script: "unauthorized",
            phase: "escalated",
            reason: "invocation_failed",
            told: &["it is not logged in"],
            starts: 2,
            ..RUNNER
        }),
    },
    Row {
        name: "quota",
        claim: "its quota is used up (429): the notice says so",
        play: Play::Runner(Runner {
            script: "quota",
            phase: "escalated",
            reason: "invocation_failed",
            told: &["its quota is used up"],
            starts: 2,
            ..RUNNER
        }),
    },
    Row {
        name: "hooks-in-a-run",
        claim: "with our hooks installed and other mail waiting: the hooks print nothing, one start, approved",
        play: Play::Runner(Runner {
            hooks: true,
            ..RUNNER
        }),
    },
    Row {
        name: "hooks",
        claim: "a person starts it, with our hooks: they report waiting mail at its start and, once, at its end",
        play: Play::Hooks,
    },
    Row {
        name: "doctor",
        claim: "`settled doctor --agents` starts it once: its answer has a word that it can only have from its brief",
        play: Play::Doctor,
    },
    Row {
        name: "pair-author",
        claim: "the author of `settled pair`: writes a file and says `DONE`",
        play: Play::Author,
    },
    Row {
        name: "pair-reviewer",
        claim: "the reviewer of `settled pair`: reads the file and says `PASS`; no request contains the repository's instructions, except with Gemini CLI",
        play: Play::Reviewer,
    },
];

/// The reason why a program cannot play a row, if any.
pub(super) fn missing(row: &Row, program: Program) -> Option<&'static str> {
    match (&row.play, program) {
        (
            Play::Runner(Runner {
                form: Form::Schema, ..
            }),
            Program::Gemini | Program::OpenCode,
        ) => Some("the program takes no schema"),
        (
            Play::Runner(Runner {
                form: Form::Shell, ..
            }),
            Program::Gemini,
        ) => Some("no shell without `yolo`"),
        (
            Play::Runner(Runner {
                script: "feedback", ..
            }),
            Program::OpenCode,
        ) => Some("its shell redirects nothing, so its findings come as JSON"),
        (Play::Hooks | Play::Runner(Runner { hooks: true, .. }), Program::OpenCode) => {
            Some("the program has no hooks of this kind")
        }
        (
            Play::Runner(Runner {
                script: "quota", ..
            }),
            Program::OpenCode,
        ) => Some("it retries for more than a minute; its budget ends it first"),
        _ => None,
    }
}
