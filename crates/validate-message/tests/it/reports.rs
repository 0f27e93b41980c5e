//! The report on each message of `packets/`, which is beside it: every rule, its place, its sentence and its fix. The
//! binary's tests write these reports; here the rules alone give them.

use std::path::Path;

use message_schema::parse;
use validate_message::{PacketInput, Violation, Violations, check, check_delivered};

/// Returns the report on a message, whose packet is found below `root`.
fn report(root: &Path, name: &str, bytes: &[u8]) -> String {
    let judged = parse(bytes).map_err(Violations::from).and_then(|message| {
        let path = message.packet_path();
        let file = path.as_ref().map(|path| root.join(path.as_str()));
        let packet = file.as_ref().map(std::fs::read);
        let input = match (&path, &packet) {
            (None, _) | (_, None) => PacketInput::NotNamed,
            (Some(path), _) if !path.as_str().starts_with("packets/") => {
                PacketInput::Unsafe("it is not in packets/".to_owned())
            }
            (Some(_), Some(Ok(packet))) => PacketInput::Bytes(packet),
            (Some(_), Some(Err(error))) if error.kind() == std::io::ErrorKind::IsADirectory => {
                PacketInput::Unsafe("it is not a regular file".to_owned())
            }
            (Some(_), Some(Err(_))) => PacketInput::Missing,
        };
        match name.contains("/inbox/") {
            true => check_delivered(&message, input),
            false => check(&message, input),
        }
    });
    let violations = match judged {
        Ok(valid) => valid.warnings().to_vec(),
        Err(violations) => violations.into_vec(),
    };
    let told = |violation: &Violation| violation.to_text(name) + "\n";
    violations.iter().map(told).collect()
}

#[test]
fn every_message_of_the_corpus_gets_the_report_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut reports = 0;
    for (path, bytes) in crate::corpus::messages() {
        let path = Path::new(&path);
        let name = path.strip_prefix(&root).expect("below the root");
        let expected = std::fs::read_to_string(path.with_extension("expected"));
        let expected = expected.unwrap_or_default();
        reports += usize::from(!expected.is_empty());
        assert_eq!(report(&root, &name.to_string_lossy(), &bytes), expected);
    }
    assert!(reports > 200, "only {reports} reports");
}
