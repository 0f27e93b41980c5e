//! The promises of message-schema about real documents.

mod agreement;
mod draft07;
mod grammar;
mod kinds;
mod oracle;
mod render;
mod shapes;
mod slips;

/// Compares what was told with the page in the file of this name, beside the tests.
fn assert_page(name: &str, told: &str, page: &str) {
    if std::env::var_os("UPDATE").is_some() {
        let path = format!("{}/tests/it/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, told).expect("a file to write");
    }
    assert_eq!(told, page, "UPDATE=1 rewrites the file");
}
