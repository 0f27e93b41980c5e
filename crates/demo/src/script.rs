//! The words of the demonstration's two agents, and its steps. Every step is a command that really runs.

/// The actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The agent of this name.
    Agent(&'static str),
    /// The person who watches.
    Person,
}

/// One command of the review, and the reason for it.
#[derive(Debug)]
pub struct DemoStep {
    /// The actor.
    pub who: Who,
    /// One sentence about the step.
    pub says: &'static str,
    /// The command's words after `settled`.
    pub words: &'static [&'static str],
    /// The text on the command's standard input.
    pub input: &'static str,
    /// The exit code that the script expects.
    pub exit: i32,
    /// The number of output lines to show.
    pub shown: usize,
}

const CLAUDE: Who = Who::Agent("claude");
const CODEX: Who = Who::Agent("codex");

/// The first head and the one with the fix, easy to recognize.
const HEAD: &str = "c0ffee1c0ffee1c0ffee1c0ffee1c0ffee1c0ffe";
const FIXED: &str = "decaf02decaf02decaf02decaf02decaf02decaf";

/// Returns the files that the agents write themselves, by name.
pub fn files() -> [(&'static str, &'static str); 1] {
    [(
        "findings.yaml",
        "\
findings:
- id: F-001
  severity: P1
  title: An empty diff is answered with nothing
  file: src/review.rs
  line: 40
- id: F-002
  severity: P2
  blocking: false
  title: The default of max_rounds is a matter of taste
  file: src/config.rs
  line: 12
- id: F-003
  severity: P3
  title: The word timeout is spelt in two ways
",
    )]
}

/// Returns the steps of the review, in order.
pub fn steps() -> &'static [DemoStep] {
    &STEPS
}

static STEPS: [DemoStep; 13] = [
    DemoStep {
        who: CLAUDE,
        says: "the author asks for a review",
        words: &[
            "send",
            "review_request",
            "--id",
            "request-1",
            "--to",
            "codex",
            "--pr",
            "86",
            "--branch",
            "empty-diff",
            "--diff-summary",
            "Says something when there is nothing to review.",
            "--declared-head",
            HEAD,
        ],
        input: "",
        exit: 0,
        shown: 4,
    },
    DemoStep {
        who: CLAUDE,
        says: "it asks again instead of waiting; it is not its turn, so the daemon refuses",
        words: &[
            "send",
            "review_request",
            "--id",
            "impatient",
            "--to",
            "codex",
            "--pr",
            "86",
            "--branch",
            "empty-diff",
            "--diff-summary",
            "Hello?",
        ],
        input: "",
        exit: 7,
        shown: 6,
    },
    DemoStep {
        who: CODEX,
        says: "the reviewer checks its status",
        words: &[],
        input: "",
        exit: 0,
        shown: 8,
    },
    DemoStep {
        who: CODEX,
        says: "it takes the request; its time and its turns count from now on",
        words: &["take", "request-1"],
        input: "",
        exit: 0,
        shown: 1,
    },
    DemoStep {
        who: CODEX,
        says: "it answers with three findings; one blocks",
        words: &[
            "feedback",
            "86",
            "--id",
            "feedback-1",
            "--findings",
            "findings.yaml",
        ],
        input: "",
        exit: 0,
        shown: 4,
    },
    DemoStep {
        who: CLAUDE,
        says: "the author asks what is missing",
        words: &["why", "86"],
        input: "",
        exit: 0,
        shown: 4,
    },
    DemoStep {
        who: CLAUDE,
        says: "it reports the fix",
        words: &[
            "send",
            "review_addressed",
            "--id",
            "addressed-1",
            "--pr",
            "86",
            "--commit-sha",
            FIXED,
            "--changes-summary",
            "An empty diff is now answered with a notice.",
            "--addressed-finding-ids",
            "F-001",
        ],
        input: "",
        exit: 0,
        shown: 4,
    },
    DemoStep {
        who: CLAUDE,
        says: "it asks for the second round, the last unless a person grants another",
        words: &[
            "send",
            "review_request",
            "--id",
            "request-2",
            "--to",
            "codex",
            "--pr",
            "86",
            "--branch",
            "empty-diff",
            "--diff-summary",
            "The same with a notice.",
            "--declared-head",
            FIXED,
        ],
        input: "",
        exit: 0,
        shown: 4,
    },
    DemoStep {
        who: CODEX,
        says: "the reviewer approves: F-001 is fixed, F-002 goes to a person, F-003 is left as a nit",
        words: &[
            "lgtm",
            "86",
            "--id",
            "lgtm-1",
            "--head",
            FIXED,
            "--action",
            "F-001=resolve",
            "--action",
            "F-002=escalate",
            "--action",
            "F-003=defer",
        ],
        input: "",
        exit: 0,
        shown: 5,
    },
    DemoStep {
        who: Who::Person,
        says: "the review has ended, after five messages and one refusal",
        words: &["status"],
        input: "",
        exit: 0,
        shown: 5,
    },
    DemoStep {
        who: Who::Person,
        says: "one thread waits for you",
        words: &["threads", "86"],
        input: "",
        exit: 0,
        shown: 14,
    },
    DemoStep {
        who: Who::Person,
        says: "CI asks whether this commit is approved",
        words: &["gate", "check", "--pr", "86", "--head", FIXED],
        input: "",
        exit: 0,
        shown: 3,
    },
    DemoStep {
        who: Who::Person,
        says: "any other commit is refused",
        words: &["gate", "check", "--pr", "86", "--head", HEAD],
        input: "",
        exit: 8,
        shown: 3,
    },
];
