//! The lines that a person sees of a pair at a terminal.

use super::*;

/// The lines left on the screen, without the parts that differ between runs.
fn left(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
    let lines = text
        .lines()
        .map(|line| line.rsplit("\u{1b}[K").next().unwrap_or_default());
    let lines = lines.filter(|line| !line.is_empty() && !line.contains(" is working, "));
    lines.map(|line| format!("{}\n", steady(line))).collect()
}

/// Replaces the pair's name and the length of its runs.
fn steady(line: &str) -> String {
    let line = match line.rsplit_once(", ") {
        Some((before, took)) if took.ends_with(" s") => before,
        Some(_) | None => line,
    };
    let words = line.split(' ').map(|word| {
        if word.starts_with("pair-") {
            "PAIR"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn at_a_terminal_each_run_is_a_line_and_the_end_a_sentence() {
    let room = Room::new();
    let task = room.place.join("task.md").display().to_string();
    let place = room.place.display().to_string();
    let reviewer = "test -e seen && echo PASS; touch seen";
    let options = [
        "pair",
        "--author",
        "claude",
        "--author-command",
        "echo DONE",
        "--task",
        &task,
    ];
    let more = [
        "--reviewer",
        "codex",
        "--reviewer-command",
        reviewer,
        "--workdir",
        &place,
    ];
    let output = room
        .mailroom
        .at_terminal(&[&options[..], &more].concat(), "");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(
        left(&output),
        "claude works, codex reviews: at most 20 iterations and 4 h of run time\n   \
         1  claude: done\n   1  codex: no signal\n   2  claude: done\n   2  codex: pass\n\
         PAIR is complete after 2 iterations\n"
    );
    let output = room.mailroom.at_terminal(
        &[
            &options[..],
            &["--max-iterations", "1", "--workdir", &place],
            &["--done", "READY"],
        ]
        .concat(),
        "",
    );
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let left = left(&output);
    assert!(
        left.contains("PAIR failed after 1 iteration: no iteration is left\n"),
        "{left}"
    );
    assert!(left.contains("settled pair --transcript PAIR"), "{left}");
}

#[test]
fn a_command_at_work_is_told_of_on_one_line_that_gives_way() {
    let room = Room::new();
    let task = room.place.join("task.md").display().to_string();
    let options = [
        "pair",
        "--author",
        "claude",
        "--author-command",
        "sleep 1.3; echo DONE",
        "--task",
        &task,
    ];
    let output = room.mailroom.at_terminal(&options, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("\r\u{1b}[K       author is working, "),
        "{text:?}"
    );
    assert!(text.contains("\r\u{1b}[K   1  claude: done, "), "{text:?}");
}
