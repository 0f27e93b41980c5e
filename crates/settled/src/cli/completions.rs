//! `settled completions` and `settled man`: generates shell completions and manual pages from the commands'
//! definitions.

use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_mangen::Man;
use serde::Serialize;

use super::answer::{CommandOutput, print};
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// Completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled completions bash > ~/.local/share/bash-completion/completions/settled
  settled completions zsh > ~/.zfunc/_settled
  settled completions fish > ~/.config/fish/completions/settled.fish")]
pub(super) struct OfShell {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Manual pages.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled man | man -l -                       the main page
  settled man ~/.local/share/man/man1          every page, one for each command")]
pub(super) struct Manual {
    /// A directory for all pages; without it the first page goes to standard output
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// The pages that were written.
#[derive(Debug, Serialize)]
struct Pages {
    directory: String,
    pages: Vec<String>,
}

/// A text that is printed as it is, unless JSON is asked for.
#[derive(Debug, Serialize)]
struct Script {
    text: String,
}

pub(super) fn completions(args: &OfShell, context: &Context) -> Result<Exit, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut (context.command_line)(),
        "settled",
        &mut bytes,
    );
    print_script(bytes, context)
}

pub(super) fn man(args: &Manual, context: &Context) -> Result<Exit, Failure> {
    let mut command = (context.command_line)().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else {
        return print_script(page(&command, "settled")?, context);
    };
    let mut pages = Vec::new();
    write(&command, "settled", directory, &mut pages)?;
    let answer = CommandOutput::new(Pages {
        directory: spool::path_text::shown(directory),
        pages,
    });
    context.say(&answer, |Pages { directory, pages }| {
        format!("{} pages in {directory}\n", pages.len())
    })?;
    Ok(Exit::Ok)
}

/// Writes the pages of a command and of all its subcommands.
fn write(
    command: &clap::Command,
    name: &str,
    directory: &Path,
    pages: &mut Vec<String>,
) -> Result<(), Failure> {
    let file = format!("{name}.1");
    let path = directory.join(&file);
    let unwritten = |error| Failure::plain(Exit::Failed, format!("{}: {error}", path.display()));
    std::fs::create_dir_all(directory).map_err(unwritten)?;
    std::fs::write(&path, page(command, name)?).map_err(unwritten)?;
    pages.push(file);
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        write(
            below,
            &format!("{name}-{}", below.get_name()),
            directory,
            pages,
        )?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> Result<Vec<u8>, Failure> {
    let examples = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    // The examples get their own section, because a paragraph would join their lines.
    let command = command.clone().after_help("");
    let mut bytes = Vec::new();
    let page = Man::new(command)
        .title(name.to_owned())
        .section("1")
        .manual("Settled");
    page.render(&mut bytes)?;
    bytes.extend(as_it_stands(&examples).into_bytes());
    Ok(bytes)
}

/// Renders the examples as a section that keeps line breaks, and escapes what roff takes for a request or a hyphen.
fn as_it_stands(examples: &str) -> String {
    if examples.is_empty() {
        return String::new();
    }
    let lines = examples
        .trim_start_matches("Examples:\n")
        .lines()
        .map(|line| {
            let line = line
                .replace('\\', "\\e")
                .replace('-', "\\-")
                .replace('\'', "\\(aq");
            if line.starts_with('.') {
                format!("\\&{line}\n")
            } else {
                format!("{line}\n")
            }
        });
    format!(".SH EXAMPLES\n.nf\n{}.fi\n", lines.collect::<String>())
}

fn print_script(bytes: Vec<u8>, context: &Context) -> Result<Exit, Failure> {
    let text = String::from_utf8(bytes).expect("it is made of our own help, which is UTF-8");
    if context.json {
        print(&CommandOutput::new(Script { text }).json())?;
    } else {
        print(&text)?;
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roff_prints_every_character_of_an_example_as_it_is() {
        assert_eq!(as_it_stands(""), "");
        assert_eq!(
            as_it_stands("Examples:\n  a -b 'c' \\\n.d"),
            ".SH EXAMPLES\n.nf\n  a \\-b \\(aqc\\(aq \\e\n\\&.d\n.fi\n"
        );
    }
}
