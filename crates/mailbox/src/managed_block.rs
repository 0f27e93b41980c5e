//! Replaces or removes our block of text in another program's file, found by its marks, and changes nothing else.

/// The line before the block.
const BEGIN: &str = "<!-- settled:begin (kept by `settled agents-md`; what is written between the marks is replaced) -->";

/// The start of the line before a block, whatever follows.
const BEGIN_MARK: &str = "<!-- settled:begin";

/// The line after the block.
const END: &str = "<!-- settled:end -->";

/// Returns the file with this block in place of ours, or appended if it has none; without a block, the file without
/// ours. The error says which mark is missing.
pub fn with_block(before: &str, block: Option<&str>) -> Result<String, String> {
    // The block uses the file's line ends; otherwise a checkout that converts them would make it look outdated.
    let end = if ends_in_crlf(before) { "\r\n" } else { "\n" };
    let ours = block.map(|block| {
        let lines = std::iter::once(BEGIN)
            .chain(block.trim_end().lines())
            .chain([END]);
        lines.fold(String::new(), |text, line| text + line + end)
    });
    let Some((head, tail)) = around(before)? else {
        let Some(ours) = ours else {
            return Ok(before.to_owned());
        };
        let gap = match before {
            "" => String::new(),
            _ if before.ends_with(&end.repeat(2)) => String::new(),
            _ if before.ends_with(end) => end.to_owned(),
            _ => end.repeat(2),
        };
        return Ok(format!("{before}{gap}{ours}"));
    };
    Ok(match ours {
        Some(ours) => format!("{head}{ours}{tail}"),
        None => format!("{head}{tail}"),
    })
}

/// True if the first line ends in CRLF.
fn ends_in_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text[..at].ends_with('\r'))
}

/// Returns the text before and after our block.
fn around(text: &str) -> Result<Option<(&str, &str)>, String> {
    let line = |mark: &str, from: usize| {
        let found = text[from..].match_indices(mark).map(|(at, _)| at + from);
        found
            .into_iter()
            .find(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n')
    };
    let Some(begin) = line(BEGIN_MARK, 0) else {
        return Ok(None);
    };
    let Some(end) = line(END, begin) else {
        return Err(format!(
            "a line begins with `{BEGIN_MARK}`, and none after it is `{END}`"
        ));
    };
    let behind = end + END.len();
    let behind = if text[behind..].starts_with("\r\n") {
        behind + 2
    } else {
        behind
    };
    let behind = if text[behind..].starts_with('\n') {
        behind + 1
    } else {
        behind
    };
    Ok(Some((&text[..begin], &text[behind..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_else_stays_and_the_second_time_changes_nothing() {
        for before in ["", "# Rules\n", "# Rules\n\n", "no end of line"] {
            let with = with_block(before, Some("one\n")).expect("a file");
            assert!(
                with.starts_with(before) && with.ends_with("one\n<!-- settled:end -->\n"),
                "{with:?}"
            );
            assert_eq!(with_block(&with, Some("one")).as_deref(), Ok(with.as_str()));
            let without = with_block(&with, None).expect("a file");
            assert_eq!(without.trim_end(), before.trim_end(), "{before:?}");
        }
        let with = with_block("a\n", Some("one")).expect("a file") + "b\n";
        let other = with_block(&with, Some("two")).expect("a file");
        assert!(
            other.starts_with("a\n\n<!--") && other.ends_with("two\n<!-- settled:end -->\nb\n"),
            "{other}"
        );
    }

    #[test]
    fn the_block_ends_its_lines_as_the_file_does() {
        for before in ["a\r\n", "a\r\n\r\n"] {
            let with = with_block(before, Some("one\ntwo")).expect("a file");
            assert!(
                with.ends_with("-->\r\none\r\ntwo\r\n<!-- settled:end -->\r\n"),
                "{with:?}"
            );
            assert_eq!(
                with_block(&with, Some("one\ntwo")).as_deref(),
                Ok(with.as_str())
            );
            assert_eq!(with_block(&with, None).as_deref(), Ok("a\r\n\r\n"));
        }
        let checked_out = with_block("a\n", Some("one"))
            .expect("a file")
            .replace('\n', "\r\n");
        assert_eq!(
            with_block(&checked_out, Some("one")).as_deref(),
            Ok(checked_out.as_str())
        );
    }

    #[test]
    fn a_block_without_an_end_is_told_and_not_guessed() {
        let told = with_block("<!-- settled:begin -->\nmine\n", Some("x")).expect_err("no end");
        assert!(told.contains("settled:end"), "{told}");
        // Marks in the middle of a line are prose.
        let prose = "say <!-- settled:begin --> and <!-- settled:end -->\n";
        assert!(
            with_block(prose, Some("x"))
                .expect("a file")
                .starts_with(prose)
        );
    }

    #[test]
    fn one_empty_line_separates_the_block_from_the_text_before_it() {
        let ours = format!("{BEGIN}\none\n{END}\n");
        for (before, head) in [
            ("", ""),
            ("a", "a\n\n"),
            ("a\n", "a\n\n"),
            ("a\n\n", "a\n\n"),
            ("a\n\n\n", "a\n\n\n"),
        ] {
            let with = with_block(before, Some("one")).expect("a file");
            assert_eq!(with, format!("{head}{ours}"), "{before:?}");
            assert_eq!(with_block(&with, None).as_deref(), Ok(head), "{before:?}");
        }
    }

    #[test]
    fn only_the_lines_between_the_marks_and_their_ends_are_replaced() {
        for (before, after) in [
            ("<!-- settled:begin -->\nold\n<!-- settled:end -->", ""),
            (
                "<!-- settled:begin -->\nold\n<!-- settled:end -->\n\nb",
                "\nb",
            ),
            ("<!-- settled:begin -->\r\n<!-- settled:end -->\r\nb", "b"),
            ("<!-- settled:begin -->\n<!-- settled:end --> b\n", " b\n"),
            (
                "a <!-- settled:begin -->\n<!-- settled:begin -->\nold <!-- settled:end -->\n<!-- settled:end -->\nb",
                "a <!-- settled:begin -->\nb",
            ),
        ] {
            assert_eq!(with_block(before, None).as_deref(), Ok(after), "{before:?}");
        }
        assert_eq!(with_block("a\n", None).as_deref(), Ok("a\n"));
    }
}
