//! Identifiers and paths as files spell them: each type holds only text that its grammar admits.
//!
//! Other rooms check whether the named thing exists; no path is opened here.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::from_text::from_text;
use crate::line;

/// The name with which the daemon signs its own messages; no agent may have it.
pub const DAEMON: &str = "settled";

/// Names the kind of identifier that a text should have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub struct NotAnId {
    /// The accepted values, in words for people.
    pub expected: &'static str,
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $admits:path) => {
        $(#[$doc])*
        // Shared, because a state clones names far more often than it makes them.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The accepted values, in words for people.
            pub const EXPECTED: &str = $expected;

            /// Reads the text; the error says which values are accepted.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NotAnId> {
                let text = text.as_ref();
                if $admits(text) { Ok(Self(text.into())) } else { Err(NotAnId { expected: Self::EXPECTED }) }
            }

            /// Returns the text as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_text(deserializer)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_type!(
    /// The name of an agent, which is also the name of its mailbox directory. `settled` fits the grammar, but is the
    /// daemon's name, so no agent may have it (see [`AgentName::is_daemon`]).
    AgentName,
    "an agent name: 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit",
    is_agent_name
);

text_type!(
    /// The id a sender gives a message; unique per sender among accepted messages.
    MessageId,
    "a message id: 1 to 200 of A-Z a-z 0-9 . _ : @ + -",
    is_message_id
);

text_type!(
    /// The number of a pull request as it was written: 1 to 20 decimal digits.
    PrNumber,
    "a pull request number: 1 to 20 decimal digits",
    is_pr_number
);

text_type!(
    /// A repository as `owner/name`.
    Repo,
    "a repository written owner/name",
    is_repo
);

text_type!(
    /// A commit, whole or abbreviated: 7 to 64 hexadecimal digits of either case.
    CommitSha,
    "a commit: 7 to 64 hexadecimal digits",
    is_commit_sha
);

text_type!(
    /// The id of a finding, and so of the thread it opens.
    FindingId,
    "a finding id: 1 to 200 characters on one line, without control or bidi characters",
    is_finding_id
);

text_type!(
    /// A conversation, as OACP 0.5.4 writes it.
    ConversationId,
    "a conversation id: conv-YYYYMMDD-<name>-<1 to 6 digits>",
    is_conversation_id
);

text_type!(
    /// The path of a packet: relative to the workspace, without `..`, `.` or empty parts.
    PacketPath,
    "a path relative to the workspace without `..`, as in packets/findings/86_codex_r1.yaml",
    is_inner_path
);

text_type!(
    /// The path of a file in the repository under review. Never opened.
    RepoPath,
    "a path relative to the repository without `..`",
    is_inner_path
);

text_type!(
    /// The digest of a diff (`docs/protocol.md`, section 11).
    DiffDigest,
    "a diff digest: `sha256:` and 64 lower-case hexadecimal digits",
    is_diff_digest
);

impl AgentName {
    /// True if this is the daemon's name, which no agent may have.
    pub fn is_daemon(&self) -> bool {
        &*self.0 == DAEMON
    }
}

impl PrNumber {
    /// Returns the number without leading zeros, by which reviews are keyed (`0086` and `86` are one).
    pub fn canonical(&self) -> &str {
        match self.0.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        }
    }

    /// Returns the same number without leading zeros.
    #[must_use]
    pub fn to_canonical(&self) -> Self {
        Self(self.canonical().into())
    }

    /// True if both name the same pull request.
    pub fn same_pr(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Repo {
    /// Returns the one name by which reviews are keyed: in lower case, because forges do not compare case, and without the
    /// `.git` of a clone's address.
    #[must_use]
    pub fn to_canonical(&self) -> Self {
        let mut name = self.0.to_ascii_lowercase();
        while let Some(rest) = name
            .strip_suffix(".git")
            .filter(|rest| !rest.ends_with('/'))
        {
            name.truncate(rest.len());
        }
        Self(name.into())
    }

    /// True if both name the same repository.
    pub fn same_repo(&self, other: &Self) -> bool {
        self.to_canonical() == other.to_canonical()
    }
}

impl CommitSha {
    /// True if both name the same commit: one is an abbreviation of the other, in any case. A whole name abbreviates
    /// nothing.
    pub fn same_commit(&self, other: &Self) -> bool {
        let shared = self.0.len().min(other.0.len());
        let are_whole = self.is_whole() && other.is_whole();
        (!are_whole || self.0.len() == other.0.len())
            && self.0.as_bytes()[..shared].eq_ignore_ascii_case(&other.0.as_bytes()[..shared])
    }

    /// True if it is a full SHA-1 or SHA-256 commit name; an abbreviation may fit many.
    pub fn is_whole(&self) -> bool {
        matches!(self.0.len(), 40 | 64)
    }
}

fn is_agent_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn is_message_id(text: &str) -> bool {
    (1..=200).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:@+-".contains(&b))
}

fn is_pr_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_repo(text: &str) -> bool {
    let part = |p: &str| {
        !p.is_empty()
            && p != "."
            && p != ".."
            && p.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    text.len() <= 200
        && text
            .split_once('/')
            .is_some_and(|(owner, name)| part(owner) && part(name))
}

fn is_commit_sha(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_diff_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digits| {
        digits.len() == 64
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_finding_id(text: &str) -> bool {
    (1..=200).contains(&text.chars().count()) && line::is_one_line(text)
}

fn is_conversation_id(text: &str) -> bool {
    let Some((date, rest)) = text.strip_prefix("conv-").and_then(|t| t.split_once('-')) else {
        return false;
    };
    let Some((name, number)) = rest.rsplit_once('-') else {
        return false;
    };
    let digits = |t: &str, len: std::ops::RangeInclusive<usize>| {
        len.contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit())
    };
    digits(date, 8..=8)
        && digits(number, 1..=6)
        && (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn is_inner_path(text: &str) -> bool {
    text.chars().count() <= 1024 && stays_below(text)
}

/// True if the path leads from a directory to something below it, by names alone.
pub(crate) fn stays_below(path: &str) -> bool {
    !path.contains(char::is_control) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_names_cannot_leave_their_directory() {
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "-x",
            "a/b",
            "a b",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(AgentName::new(bad).is_err(), "{bad:?} was admitted");
        }
        for good in ["claude", "a", "codex-2", "Gemini_1.5", &"a".repeat(64)] {
            assert!(AgentName::new(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn packet_paths_cannot_climb_or_be_absolute() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a/",
            "a\nb",
        ] {
            assert!(PacketPath::new(bad).is_err(), "{bad:?} was admitted");
        }
        assert!(PacketPath::new("packets/findings/r1.yaml").is_ok());
    }

    #[test]
    fn finding_ids_cannot_turn_a_line_around() {
        for bad in [
            "",
            "F\n1",
            "F-\u{202e}1",
            "\u{2066}F-1",
            "F\u{2028}",
            &"F".repeat(201),
        ] {
            assert!(FindingId::new(bad).is_err(), "{bad:?} was admitted");
        }
        assert!(FindingId::new("größe F 1").is_ok());
    }

    #[test]
    fn a_commit_equals_its_prefix_in_any_case() {
        let sha = |t| CommitSha::new(t).expect("a commit");
        assert!(sha("abc1234").same_commit(&sha("ABC1234def")));
        assert!(!sha("abc1234").same_commit(&sha("abc1235")));
        let [forty, sixty_four] = [40, 64].map(|digits| "a".repeat(digits));
        let (sha1, sha256) = (sha(&forty), sha(&sixty_four));
        assert!(!sha1.same_commit(&sha256) && !sha256.same_commit(&sha1));
        let short = sha("aaaaaaa");
        assert!(short.same_commit(&sha1) && short.same_commit(&sha256));
        assert!(!sha("abc1234").is_whole() && sha(&"a".repeat(40)).is_whole());
    }

    #[test]
    fn leading_zeros_do_not_make_another_pull_request() {
        let pr = |t| PrNumber::new(t).expect("a number");
        assert!(pr("0086").same_pr(&pr("86")) && pr("000").canonical() == "0");
        assert!(!pr("86").same_pr(&pr("860")));
    }

    #[test]
    fn the_address_of_a_clone_names_the_same_repository() {
        let repo = |text| Repo::new(text).expect("a repository");
        for other in [
            "Owner/Name",
            "owner/name.git",
            "OWNER/NAME.GIT",
            "owner/name.git.git",
        ] {
            assert!(repo("owner/name").same_repo(&repo(other)), "{other}");
        }
        for other in [
            "owner/name.gi",
            "owner/namegit",
            "owner/nome",
            "owner.git/name",
        ] {
            assert!(!repo("owner/name").same_repo(&repo(other)), "{other}");
        }
        assert_eq!(repo("owner/.git").to_canonical(), repo("owner/.git"));
    }

    #[test]
    fn conversation_ids_are_those_of_oacp() {
        assert!(ConversationId::new("conv-20260213-claude-1").is_ok());
        assert!(ConversationId::new("conv-20260213-a-b-123456").is_ok());
        for bad in [
            "conv-2026021-claude-1",
            "conv-20260213-claude-1234567",
            "review-pr-42",
            "conv-20260213--1",
        ] {
            assert!(ConversationId::new(bad).is_err(), "{bad:?} was admitted");
        }
    }
}
