//! The scripted model: a text file of answers, one per request of the program.
//!
//! Blank lines separate answers. In an answer, `say` adds a line of text, `json` the rest of its line as the answer by
//! a schema, `shell`, `read` and `write` call a tool, `mcp` one of settled's, `wait` delays it by some seconds, `cut`
//! breaks the connection in the middle, and `fail STATUS TYPE MESSAGE` is an error of the service. `again` alone
//! repeats the previous answer forever; `next run` begins the answers for the next start of the program. Everywhere,
//! `{brief}`, `{run}` and the bench's other names are replaced.

/// One answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The delay in seconds.
    pub wait_s: u64,
    /// An error instead of an answer.
    pub fail: Option<Failure>,
    /// The lines of text.
    pub say: Vec<String>,
    /// A document that fits the requested schema.
    pub json: Option<String>,
    /// The tool call.
    pub call: Option<Call>,
    /// True if the connection breaks in the middle.
    pub is_cut: bool,
}

/// An error of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub status: u16,
    pub kind: String,
    pub message: String,
}

/// A tool call, named alike for all programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Shell(String),
    Read(String),
    /// The file and its text.
    Write(String, String),
    /// The name of a tool of `settled mcp`, and its arguments.
    Mcp(String, String),
}

/// The answers of the model, for each start of the program.
#[derive(Clone, Debug)]
pub(super) struct Script {
    runs: Vec<Run>,
}

#[derive(Clone, Debug, Default)]
struct Run {
    answers: Vec<Answer>,
    goes_round: bool,
}

impl Script {
    /// Reads a script; the error names the line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut runs = vec![Run::default()];
        let mut answer: Option<Answer> = None;
        for (at, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                continue;
            }
            let run = runs.last_mut().expect("there is one from the beginning");
            match line.trim() {
                "" => run.answers.extend(answer.take()),
                "again" => {
                    run.answers.extend(answer.take());
                    run.goes_round = true;
                }
                "next run" => {
                    run.answers.extend(answer.take());
                    runs.push(Run::default());
                }
                line => add(answer.get_or_insert_default(), line)
                    .map_err(|why| format!("line {}: {why}", at + 1))?,
            }
        }
        let run = runs.last_mut().expect("there is one from the beginning");
        run.answers.extend(answer);
        Ok(Self { runs })
    }

    /// Returns the answer to the request after `after` answers in that start of the program; further starts repeat the
    /// last one.
    pub(super) fn answer(&self, start: usize, after: usize) -> Answer {
        let run = self.runs.get(start).or(self.runs.last());
        let found = run.and_then(|run| {
            let last = run.answers.last().filter(|_| run.goes_round);
            run.answers.get(after).or(last)
        });
        found.cloned().unwrap_or_else(|| Answer {
            say: vec!["The script is over.".to_owned()],
            ..Answer::default()
        })
    }
}

fn add(answer: &mut Answer, line: &str) -> Result<(), String> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.to_owned();
    match verb {
        "say" => answer.say.push(rest),
        "json" => answer.json = Some(rest),
        "shell" => answer.call = Some(Call::Shell(rest)),
        "read" => answer.call = Some(Call::Read(rest)),
        "write" => {
            let (file, text) = rest.split_once(' ').ok_or("expected `write FILE TEXT`")?;
            answer.call = Some(Call::Write(file.to_owned(), text.to_owned()));
        }
        "mcp" => {
            let (tool, arguments) = rest.split_once(' ').ok_or("expected `mcp TOOL JSON`")?;
            answer.call = Some(Call::Mcp(tool.to_owned(), arguments.to_owned()));
        }
        "wait" => answer.wait_s = rest.parse().map_err(|_| "expected `wait SECONDS`")?,
        "cut" => answer.is_cut = true,
        "fail" => {
            let mut words = rest.splitn(3, ' ');
            let status = words.next().and_then(|status| status.parse().ok());
            answer.fail = Some(Failure {
                status: status.ok_or("expected `fail STATUS TYPE MESSAGE`")?,
                kind: words.next().unwrap_or_default().to_owned(),
                message: words.next().unwrap_or_default().to_owned(),
            });
        }
        _ => return Err(format!("`{verb}` is no word of a script")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_answers_by_start_and_request() {
        let script = Script::read(
            "# looks first\nsay One.\nshell ls\n\nfail 429 rate_limit_error slow down\nagain\nnext run\nsay a\nsay b\n",
        )
        .expect("a script");
        let first = script.answer(0, 0);
        assert_eq!(first.say, ["One."]);
        assert_eq!(first.call, Some(Call::Shell("ls".to_owned())));
        let failure = script.answer(0, 7).fail.expect("the last is repeated");
        assert_eq!(
            (failure.status, failure.message.as_str()),
            (429, "slow down")
        );
        assert_eq!(script.answer(3, 0).say, ["a", "b"]);
        assert_eq!(script.answer(1, 1).say, ["The script is over."]);
        assert!(Script::read("shout loudly\n").is_err());
    }
}
