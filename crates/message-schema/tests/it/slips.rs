//! A text for each form of slip that YAML writers make, and some that have no name, with what the writer is told: the
//! place, the sentence and the fix.

#[test]
fn every_slip_is_named_at_its_place_and_with_its_fix() {
    let table = include_str!("slips.txt");
    let mut told = Vec::new();
    for case in table.split("====\n") {
        let (text, _) = case
            .split_once("----\n")
            .expect("a text and what it is told");
        let Err(malformed) = message_schema::parse(text.as_bytes()) else {
            panic!("no slip: {text}");
        };
        let place = malformed.place.map(|place| place.to_string());
        let (place, fix) = (place.unwrap_or_default(), malformed.fix.unwrap_or_default());
        told.push(format!(
            "{text}----\n{place}: {}\n{fix}\n",
            malformed.message
        ));
    }
    let told = told.join("====\n");
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/slips.txt");
        std::fs::write(path, &told).expect("a file to write");
    }
    assert_eq!(told, table, "UPDATE=1 rewrites the file");
}
