//! Finds the command that an unknown word means: by the words that people and other tools use for it, by its name one
//! level up or down, or by its spelling.

use clap::Command;
use message_schema::line::escaped;
use validate_message::nearest;

use super::context::quoted;
use super::failure::Failure;
use super::send;
use crate::exit::Exit;

/// Other names for commands, one per line: their word, then ours.
const SAID: &str = include_str!("said.txt");

/// The failure for a command line whose command does not exist.
pub(super) fn unknown(whole: &Command, words: &[String]) -> Failure {
    let mut parts = Parts::of(whole, words);
    let word = std::mem::take(&mut parts.word);
    let named = |path: &[String]| [&parts.before[..], path].concat();
    let meant = meant(whole, &parts.above, &word);
    let asked = [&parts.above[..], std::slice::from_ref(&word)].concat();
    let mut failure = Failure::plain(
        Exit::Usage,
        format!("there is no command `{}`", escaped(&asked.join(" "))),
    );
    if meant.is_empty() {
        let help = [&parts.above[..], &["--help".to_owned()]].concat();
        return failure.next(format!("settled {}", help.join(" ")));
    }
    for path in meant {
        let (path, after) = taking(whole, path, &parts.after);
        let run = [named(&path), after].concat();
        let run: Vec<String> = run.iter().map(|word| quoted(word.as_ref())).collect();
        failure = failure.or(format!("settled {}", run.join(" ")));
    }
    failure
}

/// A command line, split around the word that is no command.
#[derive(Default)]
struct Parts {
    /// Options before the first command.
    before: Vec<String>,
    /// The existing commands before the word.
    above: Vec<String>,
    /// The word itself.
    word: String,
    after: Vec<String>,
}

impl Parts {
    fn of(whole: &Command, words: &[String]) -> Self {
        let (mut parts, mut command) = (Self::default(), whole);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--root" || word == "--agent" {
                parts.before.push(word.clone());
                parts.before.extend(words.next().cloned());
            } else if word.starts_with('-') {
                parts.before.push(word.clone());
            } else if let Some(found) = command.find_subcommand(word) {
                parts.above.push(found.get_name().to_owned());
                command = found;
            } else {
                parts.word.clone_from(word);
                break;
            }
        }
        parts.after.extend(words.cloned());
        parts
    }
}

/// The command with as many of the following words as it takes. A group that is followed by a number becomes the
/// command that shows that pull request.
fn taking(whole: &Command, path: Vec<String>, after: &[String]) -> (Vec<String>, Vec<String>) {
    let below = |command, name: &String| Command::find_subcommand(command, name);
    let first = after.first().filter(|word| !word.starts_with('-'));
    if path.first().is_some_and(|word| word == "send") && first.is_some_and(|it| is_pr(it)) {
        return (path, [&["--pr".to_owned()], after].concat());
    }
    let Some(command) = path.iter().try_fold(whole, below) else {
        return (path, after.to_vec());
    };
    if command.has_subcommands() {
        let shown = first.and_then(|word| of_pr(&path, word));
        let rest = after.get(1..).unwrap_or_default().to_vec();
        return shown.map_or((path, after.to_vec()), |shown| (shown, rest));
    }
    let count = command.get_positionals().count();
    let takes_all = command
        .get_positionals()
        .any(|it| it.get_num_args().is_some_and(|args| args.max_values() > 1));
    let words = after
        .iter()
        .take_while(|word| !word.starts_with('-'))
        .count();
    if takes_all || words <= count {
        return (path, after.to_vec());
    }
    (path, [&after[..count], &after[words..]].concat())
}

fn is_pr(word: &str) -> bool {
    word.trim_start_matches('#').parse::<u64>().is_ok()
}

/// The command that shows a pull request, if a group is followed by its number.
fn of_pr(group: &[String], word: &str) -> Option<Vec<String>> {
    if !is_pr(word) {
        return None;
    }
    let verb = match group {
        [group] if group == "review" => "why",
        [group] if group == "thread" => "threads",
        [] | [_, ..] => return None,
    };
    Some(vec![verb.to_owned(), word.to_owned()])
}

/// The commands that the word may mean after those in `above`, each as its names.
fn meant(whole: &Command, above: &[String], word: &str) -> Vec<Vec<String>> {
    let names = |path: &str| path.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let plain = word.to_lowercase().replace('_', "-");
    if let Some(shown) = of_pr(above, word) {
        return vec![shown];
    }
    let all = paths(whole);
    if above.is_empty() {
        let mut said = SAID.lines().filter_map(|line| line.split_once(": "));
        if let Some((_, ours)) = said.find(|(theirs, _)| *theirs == plain) {
            return ours.split(", ").map(names).collect();
        }
        if let Ok(kind) = send::kind(&plain) {
            return vec![names(&format!("send {kind}"))];
        }
    }
    // Look for the same name elsewhere, then a misspelling here, then one anywhere.
    let named = |paths: &[Vec<String>], name: &str| -> Vec<Vec<String>> {
        let is_named = |path: &&Vec<String>| path.last().is_some_and(|last| last == name);
        paths.iter().filter(is_named).cloned().collect()
    };
    let same = named(&all, &plain);
    if !same.is_empty() {
        return same;
    }
    let near = |paths: &[Vec<String>]| {
        let names = paths.iter().filter_map(|path| path.last());
        let found = nearest(&plain, names.map(String::as_str));
        let mut found = found.map_or_else(Vec::new, |found| named(paths, found));
        found.truncate(2);
        found
    };
    let is_here = |path: &&Vec<String>| path.len() == above.len() + 1 && path.starts_with(above);
    let here: Vec<_> = all.iter().filter(is_here).cloned().collect();
    let here = near(&here);
    if here.is_empty() && above.is_empty() {
        return near(&all);
    }
    here
}

/// All commands as their names, first-level ones first.
fn paths(whole: &Command) -> Vec<Vec<String>> {
    fn visible(command: &Command) -> impl Iterator<Item = &Command> {
        let all = command.get_subcommands();
        all.filter(|below| !below.is_hide_set())
    }
    let name = |command: &Command| command.get_name().to_owned();
    let first = visible(whole).map(|it| vec![name(it)]);
    let second =
        visible(whole).flat_map(|it| visible(it).map(move |below| vec![name(it), name(below)]));
    first.chain(second).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::SettledCli;
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn meant(line: &str) -> Vec<String> {
        let failure = unknown(&SettledCli::command(), &words(line));
        failure.next.into_iter().map(|next| next.run).collect()
    }

    #[test]
    fn a_command_keeps_the_words_that_it_takes_and_every_option() {
        for (line, expected) in [
            ("resolve 7 F-1-001", "settled thread resolve 7 F-1-001"),
            ("resolve 7", "settled thread resolve 7"),
            ("resolve", "settled thread resolve"),
            ("dnoe q-1 q-2 q-3", "settled done q-1 q-2 q-3"),
            ("mail 7 --unread", "settled inbox --unread"),
            ("--root m merged 7", "settled --root m pr merged 7"),
        ] {
            assert_eq!(meant(line), [expected], "{line}");
        }
    }

    #[test]
    fn a_group_with_a_number_shows_that_pull_request() {
        assert_eq!(meant("review #7"), ["settled why '#7'"]);
        assert_eq!(meant("thread 7 --json"), ["settled threads 7 --json"]);
        assert_eq!(meant("gate 7"), ["settled gate --help"]);
    }

    #[test]
    fn a_slip_is_looked_for_where_it_was_made() {
        assert_eq!(meant("gate chek --pr 7"), ["settled gate check --pr 7"]);
        assert_eq!(meant("gate statsu"), ["settled gate --help"]);
        assert_eq!(meant("statsu"), ["settled status"]);
        assert_eq!(meant("marged 7"), ["settled pr merged 7"]);
        assert_eq!(meant("frobnicate"), ["settled --help"]);
    }
}
