//! Translates the parser's errors for a writer where no slip has a name of its own.

use granit_parser::ErrorKind;

/// True if the parser reports something that was opened and never closed.
pub(super) fn ends_open(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnexpectedEof
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::UnexpectedEofImplicitFlowMapping
            | ErrorKind::UnexpectedEofBlockSequence
            | ErrorKind::UnexpectedEofBlockMapping
            | ErrorKind::UnclosedFlowCollection { .. }
            | ErrorKind::UnclosedQuotedScalar
    )
}

/// Returns the fix for an error that matches no slip.
pub(super) fn advice(kind: &ErrorKind) -> Option<&'static str> {
    let tab = matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    );
    let colon = matches!(
        kind,
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement
    );
    let quote = matches!(
        kind,
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent
    );
    if matches!(kind, ErrorKind::UnclosedFlowCollection { .. }) {
        return Some("close the bracket, or put the text in double quotes");
    }
    if matches!(
        kind,
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation
    ) {
        return Some("indent the line like the lines it belongs to");
    }
    match (tab, colon, quote) {
        (true, _, _) => Some("indent with spaces"),
        (_, true, _) => Some("put a text that contains `: ` in double quotes"),
        (_, _, true) => Some("close the quotes"),
        (false, false, false) => None,
    }
}
