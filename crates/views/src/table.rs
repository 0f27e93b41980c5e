//! Tables and sizes, as every view writes them.

use screen::cells;

/// Formats a table whose columns are as wide as they need to be; leaves out empty columns.
pub fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        let widths = lines.iter().map(|line| cells(&line[column]));
        widths.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    lines.iter().fold(String::new(), |text, line| {
        let shown = line.iter().zip(widths).filter(|(_, width)| *width > 0);
        let padded =
            |(cell, width): (&String, usize)| format!("{cell}{:1$}", "", width - cells(cell));
        let padded: Vec<String> = shown.map(padded).collect();
        text + padded.join("  ").trim_end() + "\n"
    })
}

/// Formats a size in bytes for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_240_000 => format!("{} KiB", bytes / 1024),
        10_240_000.. => format!("{} MiB", bytes / 1024 / 1024),
    }
}
