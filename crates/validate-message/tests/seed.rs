//! The four messages of the review loop's own page are correct.

use message_schema::parse;
use validate_message::{PacketInput, check};

#[test]
fn the_seed_messages_are_valid() {
    let packet = include_bytes!("../../../packets/findings/20260213_review_loop_codex_r1.yaml");
    let messages: [&[u8]; 4] = [
        include_bytes!("../../../packets/valid/review_request.yaml"),
        include_bytes!("../../../packets/valid/review_feedback.yaml"),
        include_bytes!("../../../packets/valid/review_addressed.yaml"),
        include_bytes!("../../../packets/valid/review_lgtm.yaml"),
    ];
    for bytes in messages {
        let message = parse(bytes).expect("readable");
        let input = message.packet_path().map_or(PacketInput::NotNamed, |_| PacketInput::Bytes(packet));
        let valid = check(&message, input).expect("valid");
        assert_eq!(valid.warnings(), []);
    }
}
