//! Makes a ledger of a million records in seconds: the daemon judges one review, and its records are repeated with
//! other numbers, names and digests in an unbroken chain. The reader checks them like any others.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::figures::Result;
use super::room;

/// The pull request of the repeated review; all numbers have as many digits.
const FIRST_PR: usize = 4_200_000;

/// The size of a segment in bytes, as in a workspace without a config.
const SEGMENT: u64 = 64 << 20;

const LEDGER: &str = ".settled/ledger";

/// Makes a workspace at `root` whose ledger has `records` records: reviews of a request and an approval, all finished
/// and delivered, without a snapshot.
pub(crate) fn make(root: &Path, records: usize) -> Result<()> {
    room::init(root)?;
    review(root, FIRST_PR)?;
    let templates = std::fs::read_to_string(root.join(LEDGER).join(segment_name(1)))?;
    let templates: Vec<Template> = templates.lines().map(Template::of).collect();
    // First records without deliveries, so that the cursors of the following review say that everything is delivered.
    std::fs::remove_dir_all(root)?;
    room::init(root)?;
    let empty = [Template::of(
        r#"{"v":1,"seq":1,"at":"2026-02-13T10:00:00Z","prev":"sha256:0","batch":1,"kind":"declined","rules":1,"review":null,"id":null,"original":null,"deliveries":[],"decision":{"declined":{"event":{"pull":{"pr":"4200000","action":"opened"}},"order":null,"code":"thread_unknown","why":"made"}}}"#,
    )];
    write(root, &empty, records - templates.len())?;
    review(root, FIRST_PR)?;
    std::fs::remove_dir_all(root.join(LEDGER))?;
    let snapshots = root.join(".settled/snapshots");
    if snapshots.exists() {
        std::fs::remove_dir_all(snapshots)?;
    }
    std::fs::create_dir(root.join(LEDGER))?;
    write(root, &templates, records)
}

/// Lets the daemon judge a review.
fn review(root: &Path, pr: usize) -> Result<()> {
    std::fs::write(
        root.join(format!("agents/claude/outbox/{pr}.yaml")),
        room::request(pr),
    )?;
    room::once(root)?;
    std::fs::write(
        root.join(format!("agents/codex/outbox/lgtm-{pr}.yaml")),
        room::approval(pr),
    )?;
    room::once(root)
}

/// A record's line with placeholders for the parts that differ.
struct Template(Vec<Part>);

enum Part {
    Text(String),
    Seq,
    At,
    Prev,
    Pr,
    Digest,
}

impl Template {
    fn of(line: &str) -> Template {
        let digest = line
            .split_once(r#""original":{"#)
            .and_then(|(_, original)| original.split_once("sha256:"))
            .map(|(_, digest)| digest[..64].to_owned());
        let (_, rest) = line.split_once(r#""prev":""#).expect("a record has one");
        let (_, rest) = rest.split_once('"').expect("it ends");
        let mut parts = vec![
            Part::Text(r#"{"v":1,"seq":"#.to_owned()),
            Part::Seq,
            Part::Text(r#","at":""#.to_owned()),
            Part::At,
            Part::Text(r#"","prev":"sha256:"#.to_owned()),
            Part::Prev,
            Part::Text(r#"","batch":"#.to_owned()),
            Part::Seq,
        ];
        let (_, rest) = rest.split_once(r#""kind":"#).expect("a record has a kind");
        let mut rest = format!(r#","kind":{rest}"#);
        let pr = FIRST_PR.to_string();
        loop {
            let next_pr = rest.find(&pr).map(|at| (at, pr.len(), Part::Pr));
            let next_digest = digest.as_ref().and_then(|digest| {
                rest.find(digest.as_str())
                    .map(|at| (at, digest.len(), Part::Digest))
            });
            let next = next_pr
                .into_iter()
                .chain(next_digest)
                .min_by_key(|(at, ..)| *at);
            let Some((at, len, part)) = next else {
                parts.push(Part::Text(rest));
                return Template(parts);
            };
            parts.extend([Part::Text(rest[..at].to_owned()), part]);
            rest.drain(..at + len);
        }
    }

    fn line(&self, seq: usize, pr: usize, prev: &str) -> String {
        let mut line = String::new();
        let digest = hex(&Sha256::digest(seq.to_le_bytes()));
        for part in &self.0 {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Seq => write!(line, "{seq}").expect("a text has room"),
                // One per second, which no hourly limit forbids.
                Part::At => {
                    let (seconds, days) = (seq % 86_400, seq / 86_400);
                    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
                    let (month, day) = (1 + days / 28, 1 + days % 28);
                    write!(
                        line,
                        "2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.000Z",
                        seconds % 60
                    )
                    .expect("a text has room");
                }
                Part::Prev => line.push_str(prev),
                Part::Pr => write!(line, "{pr}").expect("a text has room"),
                Part::Digest => line.push_str(&digest),
            }
        }
        line
    }
}

/// Writes a ledger of this many records from the templates in turn.
fn write(root: &Path, templates: &[Template], records: usize) -> Result<()> {
    let mut prev = "0".repeat(64);
    let mut segment: Option<(BufWriter<File>, u64)> = None;
    for seq in 1..=records {
        let (template, review) = (
            &templates[(seq - 1) % templates.len()],
            (seq - 1) / templates.len(),
        );
        let line = template.line(seq, FIRST_PR + review, &prev);
        prev = hex(&Sha256::digest(line.as_bytes()));
        let (mut file, bytes) = match segment.take() {
            Some((file, bytes)) if bytes < SEGMENT => (file, bytes),
            Some(_) | None => {
                let path = root.join(LEDGER).join(segment_name(seq));
                (BufWriter::with_capacity(1 << 20, File::create(path)?), 0)
            }
        };
        file.write_all(line.as_bytes())?;
        file.write_all(b"\n")?;
        segment = Some((file, bytes + line.len() as u64 + 1));
    }
    if let Some((mut file, _)) = segment {
        file.flush()?;
    }
    Ok(())
}

fn segment_name(first: usize) -> String {
    format!("{first:020}.jsonl")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text has room");
        text
    })
}
