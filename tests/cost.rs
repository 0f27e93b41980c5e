//! The memory that the worst documents need, and the size of the text written about them. A separate program, because
//! it counts every allocated byte.

use peak_alloc::PeakAlloc;
use settled_tests::hostile::{self, Room, SIZE_MAX};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most memory for one input, in bytes.
const MEMORY_MAX: usize = 32 * 1024 * 1024;

/// The most bytes written about one input: the report, and the ledger's record with its text.
const REPORT_MAX: usize = 512 * 1024;
const LEDGER_MAX: usize = 4 * SIZE_MAX;

#[test]
fn no_document_costs_more_than_its_share_of_memory_and_of_words() {
    for document in hostile::documents() {
        let name = document.name;
        let mut room = Room::new();
        let ledger = room.ledger_bytes();
        room.lay(&document);
        MEMORY.reset_peak_usage();
        let held = MEMORY.current_usage();
        let pass = room.judge();
        let cost = MEMORY.peak_usage().saturating_sub(held);
        assert_eq!(pass.accepted + pass.refused, 1, "{name}: {pass:?}");
        assert!(cost <= MEMORY_MAX, "{name}: {cost} bytes of memory");
        assert!(
            room.report_bytes() <= REPORT_MAX,
            "{name}: a report of {} bytes",
            room.report_bytes()
        );
        let ledger = room.ledger_bytes() - ledger;
        assert!(ledger <= LEDGER_MAX, "{name}: {ledger} bytes of the ledger");
    }
}
