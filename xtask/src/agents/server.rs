//! A model server on loopback that plays a script. Each session has its own path, so one server serves all programs.
//! Keeps the requests, because what a program tells its model is tested too.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::{Header, Request, Response, Server};

use super::script::{Answer, Call, Failure, Script};
use super::wire::Wire;

/// The number of requests answered in parallel.
const THREADS: usize = 8;

/// The server; it runs until the process ends.
pub(super) struct ModelServer {
    port: u16,
    sessions: Sessions,
}

type Sessions = Arc<Mutex<BTreeMap<String, Session>>>;

/// The script for one row of one program, and its requests.
struct Session {
    script: Script,
    values: Vec<(String, String)>,
    /// The starts of the program, by the folder in its prompt.
    starts: Vec<String>,
    requests: Vec<String>,
    answered: usize,
    log: PathBuf,
}

impl ModelServer {
    pub(super) fn start() -> io::Result<Self> {
        let server = Server::http("127.0.0.1:0").map_err(io::Error::other)?;
        let port = server.server_addr().to_ip().map_or(0, |at| at.port());
        let (server, sessions) = (Arc::new(server), Sessions::default());
        for _ in 0..THREADS {
            let (server, sessions) = (Arc::clone(&server), Arc::clone(&sessions));
            thread::spawn(move || {
                while let Ok(request) = server.recv() {
                    // A program that was ended reads no answer, which is not our failure.
                    let _ = answer(request, &sessions);
                }
            });
        }
        Ok(Self { port, sessions })
    }

    /// Opens a session and returns its path, to which a program is pointed; keeps the requests in that folder.
    pub(super) fn open(
        &self,
        name: &str,
        script: Script,
        values: Vec<(String, String)>,
        log: PathBuf,
    ) -> String {
        let session = Session {
            script,
            values,
            starts: Vec::new(),
            requests: Vec::new(),
            answered: 0,
            log,
        };
        let mut sessions = self.sessions.lock().expect("no thread of ours panics");
        sessions.insert(name.to_owned(), session);
        format!("/s/{name}")
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns its local address.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the bodies of all requests of a session that the script has to answer.
    pub(super) fn requests(&self, name: &str) -> Vec<String> {
        let sessions = self.sessions.lock().expect("no thread of ours panics");
        sessions
            .get(name)
            .map_or_else(Vec::new, |session| session.requests.clone())
    }
}

fn answer(mut request: Request, sessions: &Sessions) -> io::Result<()> {
    let mut body = String::new();
    request.as_reader().read_to_string(&mut body)?;
    let path = request.url().to_owned();
    let mut parts = path.trim_start_matches("/s/").splitn(2, '/');
    let (name, rest) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    let Some(wire) = Wire::of(rest) else {
        return errand(request, rest);
    };
    let tools = wire.tools(&asked);
    let told = {
        let mut sessions = sessions.lock().expect("no thread of ours panics");
        let Some(session) = sessions.get_mut(name) else {
            return request.respond(Response::empty(404));
        };
        session.answered += 1;
        let id = session.answered;
        let kind = if tools.is_empty() {
            "errand"
        } else {
            "request"
        };
        let _ = std::fs::write(session.log.join(format!("{id:03}-{kind}.json")), &body);
        if tools.is_empty() {
            // A title or a summary, which the script does not answer.
            let said = Answer {
                say: vec!["A review".to_owned()],
                ..Answer::default()
            };
            (said, id)
        } else {
            session.requests.push(body.clone());
            (session.answer(wire, &asked, &body), id)
        }
    };
    let (said, id) = told;
    thread::sleep(Duration::from_secs(said.wait_s));
    if let Some(failure) = &said.fail {
        return fail(request, wire, failure);
    }
    stream(request, &wire.events(&said, &tools, id), said.is_cut)
}

impl Session {
    fn answer(&mut self, wire: Wire, asked: &Value, body: &str) -> Answer {
        let run = run_of(body).unwrap_or_default();
        let start = match self.starts.iter().position(|known| *known == run) {
            Some(start) => start,
            None => {
                self.starts.push(run.clone());
                self.starts.len() - 1
            }
        };
        let mut answer = self.script.answer(start, wire.answers(asked));
        let mut values = self.values.clone();
        values.push(("brief".to_owned(), format!("{run}/brief.yaml")));
        values.push(("tree".to_owned(), run.replace("/runs/", "/trees/")));
        values.push(("run".to_owned(), run));
        // No prompt contains the word of a probe: a model can only know it from the brief.
        let word = body.find("brief-0").map(|at| {
            let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
            body[at..].chars().take_while(is_word).collect()
        });
        values.push(("probe".to_owned(), word.unwrap_or_default()));
        let fill = |text: &mut String| {
            for (name, value) in &values {
                *text = text.replace(&format!("{{{name}}}"), value);
            }
        };
        answer.say.iter_mut().for_each(fill);
        answer.json.as_mut().map(fill);
        match &mut answer.call {
            Some(Call::Shell(text) | Call::Read(text) | Call::Mcp(_, text)) => fill(text),
            Some(Call::Write(file, text)) => {
                fill(file);
                fill(text);
            }
            None => {}
        }
        answer
    }
}

/// The folder that identifies the start in its prompt: of its run, or its folder in a pair.
fn run_of(body: &str) -> Option<String> {
    let is_path = |c: &char| c.is_ascii_alphanumeric() || "/._-".contains(*c);
    let path = |mark: &str| {
        let at = body.find(mark)?;
        let begin: usize = body[..at].chars().rev().take_while(is_path).count();
        let length = body[at..].chars().take_while(is_path).count();
        Some((at - begin, at + mark.len(), at + length))
    };
    if let Some((begin, at, end)) = path("/.settled/runs/") {
        let id = body[at..end].split('/').next().unwrap_or_default();
        return Some(format!("{}{id}", &body[begin..at]));
    }
    path("/given/").map(|(begin, at, _)| body[begin..at - 1].to_owned())
}

/// Answers the programs' other requests: a health check, a token count, the list of models.
fn errand(request: Request, path: &str) -> io::Result<()> {
    let document = if path.contains("count_tokens") {
        json!({"input_tokens": 10})
    } else if path.contains("countTokens") {
        json!({"totalTokens": 10})
    } else if path.contains(":generateContent") {
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "{}"}]}, "finishReason": "STOP"}]})
    } else if path.contains("models") {
        json!({"data": [], "models": []})
    } else {
        return request.respond(Response::empty(404));
    };
    request.respond(Response::from_string(document.to_string()).with_header(json_type()))
}

fn fail(request: Request, wire: Wire, failure: &Failure) -> io::Result<()> {
    let document = wire.failure(failure).to_string();
    let response = Response::from_string(document)
        .with_status_code(failure.status)
        .with_header(json_type());
    request.respond(response)
}

fn json_type() -> Header {
    Header::from_bytes("Content-Type", "application/json").expect("a header of plain letters")
}

/// Streams events, sending each at once. A cut stream ends before the last.
fn stream(request: Request, events: &[String], is_cut: bool) -> io::Result<()> {
    let mut out = request.into_writer();
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )?;
    let whole = if is_cut {
        events.len() / 2
    } else {
        events.len()
    };
    for event in &events[..whole] {
        write!(out, "{:x}\r\n{event}\r\n", event.len())?;
        out.flush()?;
    }
    if !is_cut {
        write!(out, "0\r\n\r\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_from_the_prompt() {
        let body = r#"{"text":"- /tmp/x/mailroom/.settled/runs/01ab/brief.yaml: read"}"#;
        assert_eq!(
            run_of(body).as_deref(),
            Some("/tmp/x/mailroom/.settled/runs/01ab")
        );
        let body =
            r#"{"text":"- /m/pairs/p/001/given/task.md: \n- /m/pairs/p/001/given/mail: a folder"}"#;
        assert_eq!(run_of(body).as_deref(), Some("/m/pairs/p/001/given"));
        assert_eq!(run_of("{}"), None);
    }
}
