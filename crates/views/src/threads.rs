//! The text of `settled threads`: the threads that prevent approval first, each with its discussion.

use inspect::status::threads::{Act, ThreadView, Threads};
use message_schema::line::escaped;
use screen::{Screen, cut};

/// Formats the threads of one review.
pub fn text(review: &Threads, screen: Screen) -> String {
    let Threads {
        review,
        phase,
        round_of_generation,
        rounds,
        threads,
    } = review;
    let mut text = format!("{review}: {phase}, round {round_of_generation} of {rounds}\n");
    if threads.is_empty() {
        text += "  no thread\n";
    }
    // In the last round no reply is legal, however many replies a thread has left.
    let is_last = *round_of_generation >= u32::from(*rounds);
    threads.iter().fold(text, |text, thread| {
        text + &of_thread(thread, is_last, screen)
    })
}

fn of_thread(thread: &ThreadView, is_last: bool, screen: Screen) -> String {
    let blocking = if thread.blocking { ", blocks" } else { "" };
    let title = thread
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!("  {}", escaped(title)));
    let by = thread
        .resolved_by
        .map_or_else(String::new, |by| format!(" by {by}"));
    let head = format!(
        "  {}  {}{blocking}  {}{by}{title}",
        thread.id,
        thread.severity,
        thread.state_in_words()
    );
    // A title may be as long as its packet.
    let mut text = cut(&head, screen.width) + "\n";
    let place = match (&thread.file, &thread.lines) {
        (Some(file), Some(lines)) => format!("{}:{lines}; ", escaped(file)),
        (Some(file), None) => format!("{}; ", escaped(file)),
        (None, _) => String::new(),
    };
    let again = if thread.reopened {
        ", was open again"
    } else {
        ""
    };
    // Only an open thread has replies left to count.
    let left = match (thread.state, thread.replies_left) {
        ("open", _) if is_last => String::new(),
        ("open", 1) => "1 reply left".to_owned(),
        ("open", left) => format!("{left} replies left"),
        (_, _) => String::new(),
    };
    let line = format!("{place}{left}{again}");
    if !line.is_empty() {
        text += &format!(
            "      {}\n",
            line.trim_end_matches("; ").trim_start_matches(", ")
        );
    }
    for (what, said) in [
        ("evidence", &thread.evidence),
        ("recommendation", &thread.recommendation),
        ("author", &thread.reported),
    ] {
        for (n, line) in said.iter().flat_map(|text| text.lines()).enumerate() {
            let what = if n == 0 {
                format!("{what}: ")
            } else {
                "  ".to_owned()
            };
            text += &screen.wrap(8, &format!("      {what}{}", escaped(line)));
        }
    }
    text += &may_be_done(thread);
    for Act {
        seq,
        at,
        act,
        round,
        actor,
        message,
    } in &thread.history
    {
        let message = message
            .as_ref()
            .map_or_else(String::new, |id| format!(" in {}", escaped(id)));
        let line = format!(
            "      {at}  round {round}  {act} by {}{message} (record {seq})",
            escaped(actor)
        );
        text += &screen.wrap(8, &line);
    }
    text
}

/// The actions that the reviewer and a person may take on a thread now.
fn may_be_done(thread: &ThreadView) -> String {
    let mut text = String::new();
    let mut legal = thread.legal.values();
    match (legal.next(), legal.next()) {
        (Some(one), Some(other)) if one == other => {
            text += &format!("      the reviewer may: {}\n", one.join(", "));
        }
        (Some(_) | None, _) => {
            for (stance, actions) in &thread.legal {
                text += &format!(
                    "      the reviewer may, with stance {stance}: {}\n",
                    actions.join(", ")
                );
            }
        }
    }
    let words: Vec<&str> = thread
        .person
        .iter()
        .filter_map(|fix| fix.run.split(' ').nth(2))
        .collect();
    if !words.is_empty() {
        text += &format!(
            "      a person may (settled thread): {}\n",
            words.join(", ")
        );
    }
    text
}
