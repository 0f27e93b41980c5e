//! `schema`: the JSON Schemas, for editors and other programs.

use std::process::ExitCode;

use clap::ValueEnum;
use message_schema::Schema;
use message_schema::envelope::MessageType;
use validate_message::nearest;

use crate::print;

#[derive(clap::Args)]
#[command(after_help = "\
Types: envelope (any message file), review_request, review_feedback, review_addressed, review_lgtm (the body
of such a message), findings_packet, report. The body of every other message type is free text: for these the
schema of the envelope is printed.

Examples:
  validate-message schema review_lgtm                 the body of an approval
  validate-message schema envelope --draft 07 > schemas/envelope.schema.json
                                                      for the editor: `new` writes the line that names it")]
pub(crate) struct Args {
    /// The message type, or envelope or findings_packet
    #[arg(value_name = "TYPE")]
    kind: String,

    /// The JSON Schema draft to write; both accept the same documents
    #[arg(long, value_enum, default_value_t = Draft::Draft202012)]
    draft: Draft,
}

/// The drafts a schema can be written in.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Draft {
    /// The draft of the schemas in the repository
    #[value(name = "2020-12")]
    Draft202012,
    /// The draft that most editors read
    #[value(name = "07", alias = "7", alias = "draft-07")]
    Draft07,
}

/// Prints the schema; for an unknown type, names the nearest one and exits with 3.
pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(schema) = find(&args.kind) else {
        let near = nearest(&args.kind, names());
        let next = near.map_or("validate-message schema --help".to_owned(), |near| {
            format!("validate-message schema {near}")
        });
        print::complain(&format!(
            "there is no schema for {:?}\n  try: {next}\n",
            args.kind
        ));
        return ExitCode::from(3);
    };
    print::out(&match args.draft {
        Draft::Draft202012 => schema.source().to_owned(),
        Draft::Draft07 => schema.draft07(),
    })
}

/// Returns the schema of that name; a message type whose body is free text has the envelope's.
fn find(name: &str) -> Option<Schema> {
    let of_type = || {
        MessageType::from_word(name).map(|kind| Schema::of_body(kind).unwrap_or(Schema::Envelope))
    };
    Schema::ALL
        .iter()
        .copied()
        .find(|schema| schema.name() == name)
        .or_else(of_type)
}

fn names() -> impl Iterator<Item = &'static str> {
    let types = MessageType::all().map(MessageType::as_str);
    Schema::ALL.iter().map(|schema| schema.name()).chain(types)
}
