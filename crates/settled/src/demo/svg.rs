//! The demonstration as a picture: a terminal's text as SVG, for pages that run nothing.

/// Width and height of a character's cell, in pixels.
const CELL: (f32, f32) = (8.4, 19.0);

/// The room around the text, in pixels.
const EDGE: f32 = 20.0;

/// The text in a dark frame. Lines that begin with a number are what happens, those with `$` what is typed.
pub fn svg(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
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
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() {
            continue;
        }
        let y = size(at, CELL.1);
        let style = style(line);
        svg += &format!(
            "<text x=\"{EDGE}\" y=\"{y}\"{style}>{}</text>\n",
            xml_text(line)
        );
    }
    svg + "</g>\n</svg>\n"
}

/// So many cells in a row, and the edges.
fn size(cells: usize, cell: f32) -> f32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a text of less than a million lines"
    )]
    let cells = cells as f32;
    (cells * cell + 2.0 * EDGE).ceil()
}

fn style(line: &str) -> &'static str {
    let begins = line.trim_start();
    if begins.starts_with("$ ") {
        " fill=\"#7ee2a8\""
    } else if !line.starts_with("    ") && begins.starts_with(|c: char| c.is_ascii_digit()) {
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
    fn what_is_said_is_drawn_and_nothing_of_it_is_markup() {
        let svg = svg(" 1. claude: asks\n    $ settled send <x> & y\n\n    accepted\n");
        assert_eq!(svg.matches("<text").count(), 3, "{svg}");
        assert!(
            svg.contains("settled send &lt;x&gt; &amp; y") && svg.contains("bold\"> 1. claude"),
            "{svg}"
        );
    }
}
