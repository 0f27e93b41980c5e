//! What hosts hear of each other without a record.

use super::*;

#[test]
fn hosts_hear_of_each_other_without_a_record() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let records = hosts[0].entries().len();
    for _ in 0..3 {
        ms += 10_000;
        // In one round only the hosts that pass later hear the first; a second round reaches all.
        for _ in 0..2 {
            hosts.iter_mut().for_each(|host| host.pass(ms));
        }
    }
    let heard = |host: &Host| {
        let heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let said = heard.map(|heard| {
            let clock = heard.clock_ahead().num_seconds();
            let state = &heard.state;
            (
                state.host.to_string(),
                state.standing.clone(),
                state.seq,
                heard.behind,
                clock,
            )
        });
        said.collect::<Vec<_>>()
    };
    let in_step = "in_step".to_owned();
    let of = |host: &str, clock| (host.to_owned(), in_step.clone(), 1, 0, clock);
    assert_eq!(heard(&hosts[1]), [of("box", -135), of("tower", -90)]);
    // A heartbeat that no host has signed is ignored.
    let forged = HostState {
        host: "box".parse().expect("a name"),
        version: "9.9.9".to_owned(),
        seq: 9,
        standing: in_step.clone(),
        at: hosts[2].moment(ms + 5_000).utc,
        started: hosts[2].moment(ms).utc,
        number: 9,
    };
    let forged = workspace::heartbeat::written(&forged, "w", &Named("tower"));
    log.connect().send_heartbeat(forged);
    hosts[1].pass(ms + 1_000);
    assert_eq!(heard(&hosts[1])[0], of("box", -135));
    assert_eq!(hosts[0].entries().len(), records);
}

#[test]
fn a_host_is_heard_after_its_clock_was_set_back_and_nothing_is_heard_twice() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let last = |host: &Host| {
        let mut heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let of_box = heard.find(|heard| heard.state.host.as_str() == "box");
        of_box.expect("a heartbeat").state
    };
    let speak = |hosts: &mut [Host], ms: &mut i64| {
        *ms += 10_000;
        hosts[2].pass(*ms);
        hosts[1].pass(*ms);
        last(&hosts[1])
    };
    let before = speak(&mut hosts, &mut ms);
    hosts[2].off_ms -= 3_600_000;
    let back = speak(&mut hosts, &mut ms);
    assert!(back.at < before.at, "{back:?} after {before:?}");
    hosts[2].start(&log);
    let again = speak(&mut hosts, &mut ms);
    assert_ne!(again.started, back.started, "it is another run");
    for recorded in [&before, &back, &again] {
        let bytes = workspace::heartbeat::written(recorded, "w", &Named("box"));
        log.connect().send_heartbeat(bytes);
        let heard_at = |host: &Host| fs::read(host.path(".settled/hosts.json")).expect("a file");
        let known = heard_at(&hosts[1]);
        hosts[1].pass(ms + 1_000);
        assert_eq!(heard_at(&hosts[1]), known, "{recorded:?} was heard twice");
    }
}
