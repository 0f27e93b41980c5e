//! The demonstration as a picture: the text of a terminal as SVG, for pages that run nothing.

/// Width and height of a character's cell, in pixels.
const CELL: (f32, f32) = (8.4, 19.0);

/// The room around the text, in pixels.
const EDGE: f32 = 20.0;

/// The longest line of a picture, in columns. Only commands to copy are longer in the text.
const COLUMNS: usize = 100;

/// Draws the text in a dark frame. Lines that begin with a number tell the story, lines with `$` are typed.
pub fn svg(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().flat_map(folded).collect();
    let columns = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let (width, height) = (size(columns, CELL.0), size(lines.len(), CELL.1));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"settled demo\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#14181f\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" \
         fill=\"#aab4c0\" xml:space=\"preserve\">\n"
    );
    let mut is_typed = false;
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() {
            continue;
        }
        let y = size(at, CELL.1);
        let is_command = is_typed || line.trim_start().starts_with("$ ");
        // A backslash continues a command.
        is_typed = is_command && line.ends_with(" \\");
        let style = if is_command { TYPED } else { style(line) };
        svg += &format!(
            "<text x=\"{EDGE}\" y=\"{y}\"{style}>{}</text>\n",
            xml_text(line)
        );
    }
    svg + "</g>\n</svg>\n"
}

/// The size of `cells` cells and both edges, in pixels.
fn size(cells: usize, cell: f32) -> f32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a text of less than a million lines"
    )]
    let cells = cells as f32;
    (cells * cell + 2.0 * EDGE).ceil()
}

/// Wraps a line; the further lines are indented more than the first.
fn folded(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    for word in line.trim_start().split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) => lines.push(format!("{:1$}{word}", "", indent + 4)),
            None => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines
}

/// The style of a command that is typed.
const TYPED: &str = " fill=\"#7ee2a8\"";

fn style(line: &str) -> &'static str {
    let begins = line.trim_start();
    if !line.starts_with("    ") && begins.starts_with(|c: char| c.is_ascii_digit()) {
        " fill=\"#f4f6f8\" font-weight=\"bold\""
    } else {
        ""
    }
}

fn xml_text(line: &str) -> String {
    line.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below_and_further_in() {
        let word = "x".repeat(31);
        let full = format!("  {word} {word} {word} xx");
        assert_eq!(full.chars().count(), COLUMNS);
        assert_eq!(folded(&full), std::slice::from_ref(&full), "it just fits");
        assert_eq!(
            folded(&format!("{full} y z")),
            [full.clone(), "      y z".to_owned()]
        );
        let shorter = &full[..COLUMNS - 1];
        assert_eq!(
            folded(&format!("{shorter} y")),
            [shorter, "      y"],
            "the space counts"
        );
        // A word that is too long, such as a path, stays whole.
        let path = "p".repeat(COLUMNS + 1);
        assert_eq!(folded(&path), std::slice::from_ref(&path));
        assert_eq!(
            folded(&format!("a {path}")),
            ["a".to_owned(), format!("    {path}")]
        );
    }

    #[test]
    fn a_picture_has_an_edge_on_both_sides_of_its_text() {
        assert_eq!(
            [size(0, 8.0), size(10, 8.0)].map(|size| size.to_string()),
            ["40", "120"]
        );
    }

    #[test]
    fn a_picture_is_no_wider_than_a_page_and_a_command_is_one_colour() {
        let long = format!(
            "    $ settled x \\\n        --y\n    try: {}",
            "word ".repeat(40)
        );
        let svg = svg(&long);
        assert_eq!(svg.matches(TYPED).count(), 2, "{svg}");
        let width = svg.split('"').nth(3).and_then(|width| width.parse().ok());
        assert!(width.is_some_and(|width: f32| width <= 880.0), "{svg}");
    }

    #[test]
    fn what_is_said_is_drawn_and_nothing_of_it_is_markup() {
        let svg = svg(" 1. claude: asks\n    $ settled send <x> & y\n\n    accepted\n");
        assert_eq!(svg.matches("<text").count(), 3, "{svg}");
        assert!(
            svg.contains("settled send &lt;x&gt; &amp; y") && svg.contains("bold\"> 1. claude"),
            "{svg}"
        );
    }

    #[test]
    fn each_line_is_a_cell_below_the_one_before_and_the_longest_gives_the_width() {
        let svg = svg("aaaaaaaaaa\n\nb\n\n");
        let frame = "width=\"124\" height=\"97\" viewBox=\"0 0 124 97\"";
        assert!(svg.contains(frame), "{svg}");
        for line in [
            "<text x=\"20\" y=\"40\">aaaaaaaaaa</text>",
            "<text x=\"20\" y=\"78\">b</text>",
        ] {
            assert!(svg.contains(line), "{svg}");
        }
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
    }

    #[test]
    fn a_line_is_bold_if_it_tells_the_story_and_green_if_it_is_typed() {
        for (line, style) in [
            (" 1. claude: asks", " fill=\"#f4f6f8\" font-weight=\"bold\""),
            ("12. claude: asks", " fill=\"#f4f6f8\" font-weight=\"bold\""),
            ("    12 messages", ""),
            (" accepted", ""),
            ("    $ settled", TYPED),
            ("    $ settled \\", TYPED),
        ] {
            let svg = svg(line);
            assert!(svg.contains(&format!("y=\"40\"{style}>")), "{line}: {svg}");
        }
        // The lines after a finished command are its output.
        let output = svg("    $ settled\n    $5 \\\n    more");
        assert_eq!(output.matches(TYPED).count(), 1, "{output}");
    }
}
