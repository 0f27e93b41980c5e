//! Tests what records add up to, and that a snapshot of them adds up to the same.

use review::JoinedHost;
use serde_json::{Value, json};
use spool::{Agreement, Digest, EntryDraft, HostName, Os, Spool};
use tempfile::TempDir;

use super::*;

const CODEX: &str = "#86 claude -> codex";

/// A record with this decision; `files` are its original and its deliveries.
fn draft(decision: &Value, files: &Value) -> EntryDraft {
    let original = (!files["file"].is_null()).then(|| {
        json!({
            "outbox": files["outbox"], "file": files["file"], "digest": Digest::of(b"a message"),
            "away": format!("{}/{}", files["away"].as_str().expect("a directory"), files["file"].as_str().expect("a name")),
            "text": "a message",
        })
    });
    let id = files["file"].as_str().and_then(|file| file.split_once('.'));
    EntryDraft {
        at: "2026-02-13T10:00:00.000Z".to_owned(),
        kind: "judged".to_owned(),
        rules: 1,
        review: Some(CODEX.to_owned()),
        id: id.map(|(stem, _)| stem.to_owned()),
        original: parsed(&json!(original)),
        deliveries: parsed(&files["makes"]),
        decision: serde_json::value::to_raw_value(decision).expect("JSON"),
    }
}

/// Texts of the ledger are read from JSON, and not from a value.
fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).expect("a part of a record")
}

/// The phase in which a reviewer has the request and took it at `taken_at`, if it did.
fn reviewing(request: &str, taken_at: Option<&str>) -> Value {
    json!({"reviewing": {
        "request": request, "priority": "P1", "turns": 8, "runtime_s": 600,
        "pick_up_by": "2026-02-14T10:00:00Z", "taken_at": taken_at, "attempts_left": 3, "supersessions_left": 2,
    }})
}

/// A request of claude, which makes a file in the reviewer's inbox and a brief.
fn request(pr: &str, reviewer: &str, id: &str) -> EntryDraft {
    let file = format!("{id}.yaml");
    let decision = json!({"accepted": {
        "from": "claude", "id": id, "digest": "00".repeat(32), "to": [reviewer], "type": "review_request",
        "step": {
            "review": {"pr": pr, "author": "claude", "reviewer": reviewer}, "phase": reviewing(id, None),
            "opens": {"number": 1, "rounds": 2}, "round": 1,
        },
    }});
    let makes = json!([
        {"mailbox": format!("{reviewer}/inbox"), "file": file, "content": "original"},
        {"mailbox": "packets/briefs", "file": format!("{pr}.yaml"), "content": {"text": "a brief"}},
    ]);
    draft(
        &decision,
        &json!({"outbox": "claude", "file": file, "away": "sent", "makes": makes}),
    )
}

/// Codex's message is refused, and the copy that it put into claude's inbox itself is withdrawn.
fn refusal() -> EntryDraft {
    let decision =
        json!({"refused": {"from": "codex", "code": "yaml_syntax", "notice": "withheld"}});
    let makes = json!([
        {"mailbox": "codex/dead_letter", "file": "bad.report.yaml", "content": {"text": "a report"}},
        {"mailbox": "codex/inbox", "file": "notice.yaml", "content": {"text": "a notice"}},
        {"mailbox": "claude/inbox", "file": "bad.yaml", "content": {"withdrawn": Digest::of(b"a copy")}},
    ]);
    draft(
        &decision,
        &json!({"outbox": "codex", "file": "bad.yaml", "away": "dead_letter", "makes": makes}),
    )
}

/// An event that leads the review of pull request `pr` with codex to a phase.
fn event(pr: &str, phase: &Value, reassigned_to: Option<&str>, makes: &Value) -> EntryDraft {
    let decision = json!({"happened": {"event": {"taken": {"pr": pr}}, "steps": [{
        "review": {"pr": pr, "author": "claude", "reviewer": "codex"}, "phase": phase, "round": 1,
        "reassigned_to": reassigned_to,
    }]}});
    draft(&decision, &json!({ "makes": makes }))
}

/// Pull request 86 passes to gemini, who gets a notice before the request; codex gets one as well.
fn reassigned() -> EntryDraft {
    let makes = json!([
        {"mailbox": "gemini/inbox", "file": "notice.yaml", "content": {"text": "you are next"}},
        {"mailbox": "gemini/inbox", "file": "first.yaml", "content": {"text": "the request"}},
        {"mailbox": "codex/inbox", "file": "notice.yaml", "content": {"text": "it passed on"}},
    ]);
    event("86", &reviewing("second", None), Some("gemini"), &makes)
}

/// A workspace with a ledger of these batches, whose files are delivered.
fn workspace(batches: Vec<Vec<EntryDraft>>) -> (TempDir, Spool) {
    let root = tempfile::tempdir().expect("a directory");
    let agents = ["claude", "codex", "gemini"].map(|name| name.parse().expect("a name"));
    crate::directory::init(root.path(), &agents).expect("a workspace");
    let opened = Spool::open(root.path(), Arc::new(Os), &mut |_| Ok(()));
    let mut spool = opened.expect("a spool").spool;
    batches
        .into_iter()
        .for_each(|drafts| commit(&mut spool, drafts));
    (root, spool)
}

fn commit(spool: &mut Spool, drafts: Vec<EntryDraft>) {
    spool.commit(spool.next_seq(), drafts).expect("a commit");
    spool.deliver(0).expect("a delivery");
    spool.checkpoint().expect("a checkpoint");
}

/// Makes a snapshot of the ledger with an index of its own.
fn snapshot(spool: &Spool) -> std::path::PathBuf {
    let maker = spool.snapshot_maker().expect("a ledger");
    let made = maker.expect("records").make(&mut LedgerIndex::default());
    made.expect("a snapshot").path
}

/// The index folded from all records, without any snapshot.
fn folded(root: &Path) -> LedgerIndex {
    let mut index = LedgerIndex::default();
    spool::read_ledger(root, &mut |entry| index.add(entry)).expect("a ledger");
    index
}

fn read(root: &Path) -> (LedgerIndex, Option<u64>) {
    let (index, folded) = LedgerIndex::read(root).expect("a ledger");
    (index, folded.snapshot)
}

/// The untaken requests: the number of the pull request, the mailbox, the file and the record of each.
fn untaken(index: &LedgerIndex) -> Vec<(String, String, u64)> {
    let all = index.untaken.iter();
    all.flat_map(|(key, delivered)| {
        let place = |it: &Delivered| format!("{}/{}", it.mailbox, it.file);
        let each = delivered.iter();
        each.map(move |it| (key.pr.to_string(), place(it), it.seq))
    })
    .collect()
}

#[test]
fn a_request_waits_where_it_was_delivered_until_its_reviewer_takes_it_or_loses_it() {
    let one = |pr: &str, place: &str, seq| (pr.to_owned(), place.to_owned(), seq);
    let first = one("86", "codex/inbox/first.yaml", 1);
    let second = one("86", "codex/inbox/second.yaml", 2);
    let taken = reviewing("other", Some("2026-02-13T11:00:00Z"));
    let steps = [
        (request("86", "codex", "first"), vec![first.clone()]),
        // A reviewer that takes the request that was replaced has started too.
        (
            request("86", "codex", "second"),
            vec![first.clone(), second.clone()],
        ),
        (
            request("87", "codex", "other"),
            vec![
                first.clone(),
                second.clone(),
                one("87", "codex/inbox/other.yaml", 3),
            ],
        ),
        (event("87", &taken, None, &json!([])), vec![first, second]),
        (reassigned(), vec![one("86", "gemini/inbox/first.yaml", 5)]),
        (
            event("86", &json!({"closed": "merged"}), None, &json!([])),
            vec![],
        ),
    ];
    let (root, mut spool) = workspace(Vec::new());
    for (draft, waiting) in steps {
        commit(&mut spool, vec![draft]);
        let seq = spool.next_seq() - 1;
        assert_eq!(untaken(&folded(root.path())), waiting, "after record {seq}");
    }
}

#[test]
fn a_file_in_an_inbox_is_known_by_its_bytes_and_its_reader() {
    let (root, _spool) = workspace(vec![vec![request("86", "codex", "first"), refusal()]]);
    let index = folded(root.path());
    for (agent, text, is_known) in [
        ("codex", "a message", true),
        ("codex", "a notice", true),
        ("claude", "a message", false),
        ("codex", "another message", false),
        ("codex", "a report", false),
        ("claude", "a copy", false),
    ] {
        let digest = Digest::of(text.as_bytes());
        let known = index.known_deliveries.contains(agent, &digest);
        assert_eq!(known, is_known, "{text:?} for {agent}");
    }
}

#[test]
fn refused_messages_are_counted_and_remembered() {
    let (root, _spool) = workspace(vec![vec![
        request("86", "codex", "first"),
        refusal(),
        refusal(),
    ]]);
    let index = folded(root.path());
    assert_eq!(index.refused(), 2);
    let of: Vec<&str> = index.refusals.iter().map(|(outbox, _)| outbox).collect();
    assert_eq!(of, ["codex", "codex"]);
    assert_eq!(index.state().reviews().count(), 1);
}

#[test]
fn the_state_can_be_made_alone() {
    let drafts = vec![request("86", "codex", "first"), refusal(), reassigned()];
    let (root, _spool) = workspace(vec![drafts]);
    let mut state = State::default();
    for entry in entries(root.path()) {
        apply(&mut state, &entry).expect("a decision");
    }
    assert_eq!(state, folded(root.path()).state);
}

#[test]
fn a_snapshot_and_the_records_after_it_add_up_to_what_all_records_do() {
    let many = (100..140).map(|pr| request(&pr.to_string(), "codex", &format!("of-{pr}")));
    let (root, mut spool) = workspace(vec![
        vec![request("86", "codex", "first"), refusal()],
        many.collect(),
        vec![refusal()],
    ]);
    snapshot(&spool);
    assert_eq!(read(root.path()), (folded(root.path()), Some(43)));
    commit(&mut spool, vec![reassigned(), refusal()]);
    assert_eq!(read(root.path()), (folded(root.path()), Some(43)));
    // A read forgets what the index held before.
    let mut again = folded(root.path());
    spool::fold_ledger(root.path(), &mut again).expect("a ledger");
    assert_eq!(again, folded(root.path()));
    // The next one goes on from this one, and holds only the rows that are new.
    snapshot(&spool);
    assert_eq!(read(root.path()), (folded(root.path()), Some(45)));
    let (_, snapshots) =
        spool::verify_with::<LedgerIndex>(root.path(), &mut |_| Ok(())).expect("an intact ledger");
    assert_eq!(
        snapshots,
        [(43, Agreement::Agrees), (45, Agreement::Agrees)]
    );
}

#[test]
fn rows_that_were_damaged_are_made_from_the_records() {
    let (root, spool) = workspace(vec![vec![request("86", "codex", "first"), refusal()]]);
    let path = snapshot(&spool);
    let whole = folded(root.path());
    let (key, _) = whole.new_rows()[0];
    let mut bytes = std::fs::read(&path).expect("a snapshot");
    let at = bytes.windows(key.len()).position(|window| window == key);
    bytes[at.expect("the first row") + 8] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let (index, snapshot) = read(root.path());
    assert_eq!(snapshot, Some(2), "its lines are intact");
    assert_eq!(index, whole);
    let message = Digest::of(b"a message");
    assert!(index.known_deliveries.contains("codex", &message));
    assert!(!index.known_deliveries.contains("gemini", &message));
}

#[test]
fn rows_are_sorted_by_key() {
    let row = |first: u8, second: u8, last: u8| {
        let mut key = [0; size_of::<RowKey>()];
        (key[0], key[1], key[19]) = (first, second, last);
        (key, &[][..])
    };
    let mut rows = vec![row(0, 0, 0), row(255, 255, 255)];
    for n in 0..=255_u8 {
        rows.push(row(b'n', n.wrapping_mul(7), n));
        rows.push(row(b'k', 3, n.wrapping_mul(11)));
        rows.push(row(n, b'k', 1));
    }
    let mut expected = rows.clone();
    expected.sort_unstable();
    assert_eq!(in_order(rows), expected);
    assert_eq!(in_order(Vec::new()), []);
}

#[test]
fn only_the_empty_row_of_a_review_that_waited_is_a_removal() {
    let index = LedgerIndex::default();
    let key = |kind: u8| [kind; size_of::<RowKey>()];
    assert!((0..=u8::MAX).all(|kind| index.is_removal(&key(kind), &[]) == (kind == b'w')));
    assert!(!index.is_removal(&key(b'w'), b"a review"));
}

#[test]
fn a_decision_of_a_newer_version_is_named_with_its_record() {
    let (root, _spool) = workspace(vec![vec![
        refusal(),
        draft(&json!({"foretold": {}}), &json!({"makes": []})),
    ]]);
    let mut index = LedgerIndex::default();
    let error = spool::read_ledger(root.path(), &mut |entry| index.add(entry));
    let said = spool::chain(&error.expect_err("nobody knows it"));
    let expected = "ledger record 2: the decision is not readable by this version of settled";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_snapshot_is_of_one_version_and_its_lines_are_of_known_kinds() {
    let form = LedgerIndex::default().form();
    assert!(
        form.starts_with(concat!("settled ", env!("CARGO_PKG_VERSION"), " ")),
        "{form}"
    );

    let (root, spool) = workspace(vec![vec![refusal()]]);
    let maker = spool.snapshot_maker().expect("a ledger").expect("records");
    let made = maker.make(&mut LedgerIndex::default()).expect("a snapshot");
    let mut index = folded(root.path());
    let odd = ["refused 1", "foretold 7"].map(|line| line.as_bytes().to_vec());
    let restored = index.restore(&mut odd.into_iter(), &made.rows);
    let error = restored.expect_err("an unknown kind").to_string();
    assert!(error.contains("writes no such line"), "{error}");
}

fn entries(root: &Path) -> Vec<Entry> {
    let mut all = Vec::new();
    spool::read_ledger(root, &mut |entry| {
        all.push(entry.clone());
        Ok(())
    })
    .expect("a ledger");
    all
}

fn joined(host: &str) -> HostChange {
    HostChange::Joined(JoinedHost {
        host: host.to_owned(),
        key: "ed25519:00".to_owned(),
        version: "0.1.0".to_owned(),
        agents: vec!["codex".parse().expect("a name")],
        policy: "[rounds]\nmax = 3\n".to_owned(),
    })
}

#[test]
fn a_snapshot_has_the_hosts_that_share_the_ledger() {
    let mut index = LedgerIndex::default();
    let tower: HostName = "tower".parse().expect("a name");
    assert_eq!(index.fleet.change(&joined("tower"), &tower), Ok(()));
    index.fleet.note(&tower, 7, DateTime::UNIX_EPOCH);
    let mut lines = Vec::new();
    let mut write = |line: &[u8]| {
        lines.push(line.to_vec());
        Ok(())
    };
    index.save(&mut write).expect("lines");
    let mut rows = lines.iter().filter_map(|line| line.strip_prefix(b"fleet "));
    let restored = rows.next().map(serde_json::from_slice::<Fleet>);
    let restored = restored.expect("a line").expect("a fleet");
    assert_eq!(restored, index.fleet);
}

#[test]
fn a_host_joins_by_a_record_of_its_own_and_every_record_counts_for_the_host_that_wrote_it() {
    let change = json!({"happened": {"event": {"host": joined("tower")}}});
    let (root, _spool) = workspace(vec![vec![draft(&change, &json!({"makes": []})), refusal()]]);
    let written_by = |host: Option<&str>| {
        let mut index = LedgerIndex::default();
        let folded = entries(root.path()).into_iter().try_for_each(|mut entry| {
            entry.host = host.map(|host| host.parse().expect("a name"));
            index.add(&entry)
        });
        folded.map(|()| index).map_err(|error| error.to_string())
    };
    let index = written_by(Some("tower")).expect("its own record");
    let member = index.fleet.members().next().expect("a host");
    let at = "2026-02-13T10:00:00Z".parse().expect("an instant");
    assert_eq!(member.0.as_str(), "tower");
    assert_eq!(member.1.last_record, Some((2, at)));
    assert_eq!(
        written_by(Some("laptop")).map(drop),
        Err("host laptop speaks for host tower".to_owned())
    );
    // A ledger that one host writes has no hosts.
    assert!(written_by(None).expect("a ledger").fleet.is_empty());
}
