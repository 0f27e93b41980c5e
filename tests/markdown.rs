//! The parts of Markdown that the tests of the documents need: fenced blocks, links, headings, paths.

/// A fenced block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The words after the opening fence: `sh`, `text`, `sh no-run`.
    pub info: String,
    /// The lines between the fences.
    pub text: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// The HTML comment on the line before the fence, if there is one.
    pub comment: Option<String>,
    /// True if only empty lines separate this block from the one before.
    pub follows_a_block: bool,
}

/// Returns the fenced blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut before = "";
    let mut only_blank_lines = false;
    let mut lines = page.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let inside = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```");
            let text: String = inside.map(|line| format!("{line}\n")).collect();
            let comment = before
                .strip_prefix("<!--")
                .and_then(|rest| rest.strip_suffix("-->"));
            let comment = comment.map(|comment| comment.trim().to_owned());
            blocks.push(Block {
                info: info.trim().to_owned(),
                text,
                line: n + 1,
                comment,
                follows_a_block: only_blank_lines,
            });
            (before, only_blank_lines) = ("", true);
        } else if !line.trim().is_empty() {
            (before, only_blank_lines) = (line, false);
        }
    }
    blocks
}

/// The page without its fenced blocks.
fn prose(page: &str) -> String {
    let mut inside = false;
    let is_prose = |line: &&str| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    };
    page.lines()
        .filter(is_prose)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Returns the targets of the page's links.
pub fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let targets = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

/// Returns the texts between backticks.
pub fn code_spans(page: &str) -> Vec<String> {
    prose(page)
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Returns the anchors of the page's headings.
pub fn anchors(page: &str) -> Vec<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| anchor(heading.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| {
        if c == ' ' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

/// True if a page may show `text` as `shown`: `…` replaces anything within a line, and alone on a line any number of
/// lines.
pub fn shows(shown: &str, text: &str) -> bool {
    let shown: Vec<&str> = shown.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    shows_lines(&shown, &text)
}

fn shows_lines(shown: &[&str], text: &[&str]) -> bool {
    match (shown, text) {
        ([], []) => true,
        (["…", rest @ ..], _) => {
            (0..=text.len()).any(|skipped| shows_lines(rest, &text[skipped..]))
        }
        ([line, rest @ ..], [said, more @ ..]) => shows_line(line, said) && shows_lines(rest, more),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

fn shows_line(shown: &str, said: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = said.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
