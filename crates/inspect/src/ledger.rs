//! Checks a whole ledger: its chain, each text against its digests, the snapshots, and heads that the operator kept
//! elsewhere. Names the first wrong record.

use std::collections::BTreeMap;
use std::path::Path;

use message_schema::line::escaped;
use review::Record;
use serde_json::Value;
use spool::{Agreement, Digest, Entry, SpoolError, Verified};
use workspace::index::{self, LedgerIndex};

/// The last record of a ledger at an earlier time, as the operator kept it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptHead {
    /// Its number, if it was kept.
    pub record: Option<u64>,
    /// The digest of its line.
    pub digest: Digest,
}

/// A ledger whose records are chained.
#[derive(Debug)]
pub struct LedgerCheck {
    /// Its size and its end.
    pub verified: Verified,
    /// The result of comparing each snapshot with the records, by the snapshot's last record.
    pub snapshots: Vec<(u64, Agreement)>,
    /// The first wrong record, if any.
    pub wrong: Option<WrongRecord>,
}

/// The first record that was changed, or the range that contains it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct WrongRecord {
    /// The first record it can be.
    pub first: u64,
    /// The last record it can be.
    pub last: u64,
    /// The fault: the actual and the expected state.
    pub what: String,
}

/// Reads the whole ledger without the lock and checks it. A broken chain is an error that names the line.
pub fn check(root: &Path, heads: &[KeptHead]) -> Result<LedgerCheck, SpoolError> {
    let mut digests = Vec::new();
    let mut fault = None;
    let (verified, snapshots) = spool::verify_with::<LedgerIndex>(root, &mut |entry| {
        digests.push(entry.prev);
        if fault.is_none() {
            fault = fault_of(entry)?;
        }
        Ok(())
    })?;
    digests.push(verified.last);
    let mut anchors = Anchors::default();
    for (seq, agreement) in &snapshots {
        match agreement {
            Agreement::Agrees => anchors.holds(*seq),
            Agreement::Contradicts(what) => {
                anchors.fails(
                    *seq,
                    format!("the snapshot at {seq} contradicts it: {what}"),
                );
            }
            Agreement::Differs | Agreement::PassedOver(_) => {}
        }
    }
    for head in heads {
        anchors.head(head, &digests);
    }
    let wrong = fault.into_iter().chain(anchors.first_wrong());
    let wrong = wrong.min_by_key(|wrong| wrong.last);
    Ok(LedgerCheck {
        verified,
        snapshots,
        wrong,
    })
}

/// Returns the fault in one record's text. Its digest must equal both the record's and the decision's.
fn fault_of(entry: &Entry) -> Result<Option<WrongRecord>, index::Unreadable> {
    let (record, _) = index::decision(entry)?;
    let Some(original) = &entry.original else {
        return Ok(None);
    };
    let found = original
        .text
        .as_ref()
        .map(|text| Digest::of(text.as_bytes()));
    let what = match (found, original.digest, judged(&record)) {
        (Some(found), Some(recorded), _) if found != recorded => Some(format!(
            "its text has the digest {found}, and the record says {recorded}"
        )),
        (_, recorded, Some(judged)) if recorded.map(|digest| digest.bytes()) != Some(judged) => {
            Some("its decision is about a text with another digest".to_owned())
        }
        (_, _, _) => None,
    };
    let seq = entry.seq;
    Ok(what.map(|what| WrongRecord {
        first: seq,
        last: seq,
        what,
    }))
}

fn judged(record: &Record) -> Option<[u8; 32]> {
    record.accepted().map(|accepted| accepted.digest.0)
}

/// Records whose digests are known from elsewhere. The chain binds each to all records before it.
#[derive(Default)]
struct Anchors(BTreeMap<u64, Result<(), String>>);

impl Anchors {
    fn holds(&mut self, seq: u64) {
        self.0.entry(seq).or_insert(Ok(()));
    }

    fn fails(&mut self, seq: u64, what: String) {
        self.0.insert(seq, Err(what));
    }

    /// `digests` begins with record 0, which stands for the empty ledger.
    fn head(&mut self, head: &KeptHead, digests: &[Digest]) {
        let KeptHead { record, digest } = head;
        let end = digests.len() as u64 - 1;
        let found = match record {
            Some(seq) => usize::try_from(*seq).ok().and_then(|seq| digests.get(seq)),
            None => digests.iter().find(|found| *found == digest),
        };
        match (record, found) {
            (Some(seq), Some(found)) if found == digest => self.holds(*seq),
            (Some(seq), Some(found)) => {
                self.fails(*seq, format!("its digest is {found}, expected {digest}"));
            }
            (Some(seq), None) => {
                let what = format!(
                    "the ledger ends with record {end}, expected record {seq} with {digest}"
                );
                self.fails(*seq, what);
            }
            (None, Some(_)) => {}
            (None, None) => self.fails(end, format!("no record has the digest {digest}")),
        }
    }

    fn first_wrong(self) -> Option<WrongRecord> {
        let mut right = 0;
        for (last, anchor) in self.0 {
            match anchor {
                Ok(()) => right = last,
                Err(what) => {
                    let first = (right + 1).min(last);
                    return Some(WrongRecord { first, last, what });
                }
            }
        }
        None
    }
}

/// Reads the heads from what `settled ledger verify` printed, once or several times, as text or as JSON.
pub fn kept_heads(text: &str) -> Result<Vec<KeptHead>, String> {
    let expected = "expected what `settled ledger verify` printed";
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let heads: Vec<KeptHead> = match documents.collect::<Result<Vec<Value>, _>>() {
        Ok(documents) => documents.iter().filter_map(of_document).collect(),
        Err(_) => text
            .lines()
            .enumerate()
            .filter_map(|(at, line)| of_line(line).transpose().map(|head| (at + 1, head)))
            .map(|(line, head)| {
                head.map_err(|found| format!("line {line}: found {found}, {expected}"))
            })
            .collect::<Result<_, _>>()?,
    };
    if heads.is_empty() {
        return Err(format!("no head is in it, {expected}"));
    }
    Ok(heads)
}

fn of_document(document: &Value) -> Option<KeptHead> {
    let data = &document["data"];
    Some(KeptHead {
        record: Some(data["records"].as_u64()?),
        digest: data["last"].as_str()?.parse().ok()?,
    })
}

/// Returns the head that a line names, if any. The error is a word that should have been a digest.
fn of_line(line: &str) -> Result<Option<KeptHead>, String> {
    let Some(word) = line
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"))
    else {
        return Ok(None);
    };
    let digest = word.parse().map_err(|_| format!("`{}`", escaped(word)))?;
    let record = line.split_whitespace().find_map(|word| word.parse().ok());
    Ok(Some(KeptHead { record, digest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[test]
    fn heads_are_read_from_every_form_that_verify_prints() {
        let [four, nine] = ["four", "nine"].map(digest);
        let kept = |record, digest| KeptHead { record, digest };
        let text = format!(
            "ok: 4 records in 1 segments, the last is {four}\nthe snapshot at 4 agrees with the records\n\nok: 9 records in 2 segments, the last is {nine}\n"
        );
        let both = vec![kept(Some(4), four), kept(Some(9), nine)];
        assert_eq!(kept_heads(&text), Ok(both));
        let json = format!("{{\n\"data\": {{\"records\": 4, \"last\": \"{four}\"}}\n}}\n");
        assert_eq!(kept_heads(&json), Ok(vec![kept(Some(4), four)]));
        assert_eq!(kept_heads(&format!("{four}\n")), Ok(vec![kept(None, four)]));
    }

    #[test]
    fn a_file_without_a_head_is_no_proof() {
        for (text, says) in [
            ("", "no head"),
            ("{}", "no head"),
            ("ok\nsha256:12\n", "line 2: found `sha256:12`"),
        ] {
            let error = kept_heads(text).expect_err(text);
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_first_wrong_record_lies_behind_the_last_place_that_holds() {
        let digests: Vec<Digest> = ["0", "1", "2", "3", "4", "5"].map(digest).to_vec();
        let wrong = |heads: &[(Option<u64>, &str)]| {
            let mut anchors = Anchors::default();
            for (record, text) in heads {
                let (record, digest) = (*record, digest(text));
                anchors.head(&KeptHead { record, digest }, &digests);
            }
            anchors.first_wrong().map(|wrong| (wrong.first, wrong.last))
        };
        assert_eq!(wrong(&[(Some(2), "2"), (None, "4"), (Some(5), "5")]), None);
        assert_eq!(wrong(&[(Some(4), "x")]), Some((1, 4)));
        assert_eq!(
            wrong(&[(Some(4), "x"), (Some(3), "3"), (Some(5), "y")]),
            Some((4, 4))
        );
        assert_eq!(wrong(&[(Some(2), "2"), (Some(9), "9")]), Some((3, 9)));
        assert_eq!(wrong(&[(None, "x")]), Some((1, 5)));
    }
}
