//! The page of a large mailroom: from a request to its first byte, beside the command with the same content.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::room;

/// The number of reviews that wait for a person.
const REVIEWS: usize = 1_000;

/// The number of times each page is requested.
const TIMES: usize = 50;

pub(crate) fn run(ground: &Ground) -> Result<()> {
    room::build_package("settled-page")?;
    let root = ground.fresh("page")?;
    room::init(&root)?;
    let outbox = root.join("agents/claude/outbox");
    for number in 1..=REVIEWS {
        std::fs::write(
            outbox.join(format!("{number:06}.yaml")),
            room::request(number),
        )?;
    }
    room::once(&root)?;
    for number in REVIEWS + 1..=room::QUESTIONS_MAX {
        let question = room::Kind::Question.message(number);
        std::fs::write(outbox.join(format!("{number:06}.yaml")), question)?;
    }
    room::once(&root)?;
    let records = spool::read_ledger(&root, &mut |_| Ok(()))?.records;
    println!("the page, {REVIEWS} reviews, {records} records, {TIMES} times each");
    let status = line("settled status --json", "", &mut many(|| asked(&root))?);
    let page = Page::open(&root)?;
    let bytes = page.get()?.1;
    let first = line(
        "the page, to its first byte",
        "   to reach: 100 ms",
        &mut many(|| Ok(page.get()?.0))?,
    );
    println!(
        "  ratio                                 {:>9.2}      to reach: 1",
        first / status
    );
    println!(
        "  size of the page                      {:>9.2} kB   to reach: 300 kB\n",
        bytes as f64 / 1e3
    );
    Ok(())
}

fn many(mut once: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    (0..TIMES).map(|_| once()).collect()
}

/// Prints the median and the slowest of the times in milliseconds; returns the median.
fn line(what: &str, to_reach: &str, times: &mut [f64]) -> f64 {
    let median = quantile(times, 0.5);
    println!(
        "  {what:<37} {median:>9.2} ms{to_reach}   slowest {:.2} ms",
        quantile(times, 1.0)
    );
    median
}

/// Measures a command from its start to its end.
fn asked(root: &Path) -> Result<f64> {
    let began = Instant::now();
    let status = Command::new(room::settled())
        .args(["status", "--json"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = milliseconds(began);
    if status.success() {
        Ok(took)
    } else {
        Err(format!("settled status: {status}").into())
    }
}

/// A running page, with a session.
struct Page {
    server: Child,
    host: String,
    cookie: String,
}

impl Page {
    fn open(root: &Path) -> Result<Self> {
        let mut server = Command::new(room::settled())
            .arg("page")
            .arg(root)
            .env("SETTLED_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = server.stdout.take().expect("standard output is piped");
        let mut page = Self {
            server,
            host: String::new(),
            cookie: String::new(),
        };
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said)?;
        let link = said.trim().strip_prefix("open http://").ok_or("no link")?;
        let (host, path) = link.split_once('/').ok_or("no path")?;
        host.clone_into(&mut page.host);
        let mut answer = String::new();
        page.ask(&format!("/{path}"))?.read_to_string(&mut answer)?;
        let mut lines = answer.lines();
        let cookie = lines.find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        cookie
            .ok_or("the link does not let in")?
            .clone_into(&mut page.cookie);
        Ok(page)
    }

    fn ask(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.host)?;
        let Self { host, cookie, .. } = self;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }

    /// Returns the milliseconds to the first byte of the page of all reviews, and its size.
    fn get(&self) -> Result<(f64, usize)> {
        let began = Instant::now();
        let mut stream = self.ask("/")?;
        let mut answer = vec![0];
        stream.read_exact(&mut answer)?;
        let took = milliseconds(began);
        stream.read_to_end(&mut answer)?;
        if answer.starts_with(b"HTTP/1.1 200") {
            Ok((took, answer.len()))
        } else {
            Err("there is no page".into())
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
