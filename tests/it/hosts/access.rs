//! Access to a real broker by token, by NKey, and over TLS with certificates on both sides; and the error for a host
//! that it rejects.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use settled_host::access::Access;
use settled_host::jetstream::{JetStream, LedgerName};
use settled_tests::broker::Broker;
use settled_tests::{sh, write};
use spool::log::LogError;

/// The time a local broker may take to accept or reject a client.
const ANSWERS: Duration = Duration::from_secs(5);

fn secret(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    write(&path, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    path
}

fn connects(url: &str, access: &Access) -> Result<(), LogError> {
    let place = LedgerName {
        workspace: "w".to_owned(),
        shard: "1".to_owned(),
    };
    let servers = settled_host::access::servers(url).expect("an address");
    let options = access.options().expect("files that can be read");
    let log = JetStream::open(servers, options, &place)?;
    log.wait_until_connected(ANSWERS)
}

fn is_denied(told: &Result<(), LogError>) -> bool {
    matches!(told, Err(LogError::Denied { .. }))
}

#[test]
fn a_token_lets_a_host_in_and_another_one_does_not() {
    let directory = settled_tests::scratch();
    let broker = Broker::with(directory.path(), "authorization { token: \"right\" }\n");
    let with = |text| Access {
        token: Some(secret(directory.path(), "token", text)),
        ..Access::default()
    };
    assert_eq!(connects(&broker.url(), &with("right\n")), Ok(()));
    let told = connects(&broker.url(), &with("wrong"));
    assert!(is_denied(&told), "{told:?}");
    let told = connects(&broker.url(), &Access::default());
    assert!(is_denied(&told), "{told:?}");
}

#[test]
fn an_nkey_lets_a_host_in_and_another_one_does_not() {
    let directory = settled_tests::scratch();
    let (ours, theirs) = (nkeys::KeyPair::new_user(), nkeys::KeyPair::new_user());
    let users = format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}\n",
        ours.public_key()
    );
    let broker = Broker::with(directory.path(), &users);
    let with = |pair: &nkeys::KeyPair| {
        let seed = pair.seed().expect("a seed");
        Access {
            nkey: Some(secret(directory.path(), "nkey", &seed)),
            ..Access::default()
        }
    };
    assert_eq!(connects(&broker.url(), &with(&ours)), Ok(()));
    let told = connects(&broker.url(), &with(&theirs));
    assert!(is_denied(&told), "{told:?}");
}

#[test]
fn over_tls_each_side_knows_the_other_by_its_certificate() {
    let directory = settled_tests::scratch();
    let at = directory.path();
    sh(
        at,
        "authority() {
           openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$1 \\
             -keyout $1.key -out $1.pem
         }
         signed() {
           openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$1 -keyout $1.key -out $1.csr
           echo 'subjectAltName=IP:127.0.0.1' > $1.ext
           openssl x509 -req -in $1.csr -CA authority.pem -CAkey authority.key -days 2 -extfile $1.ext -out $1.pem
         }
         { authority authority; authority stranger; signed broker; signed host; } 2>&1
         chmod 600 *.key",
    );
    let path = |name: &str| at.join(name);
    let tls = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}\n",
        path("broker.pem").display(),
        path("broker.key").display(),
        path("authority.pem").display()
    );
    let broker = Broker::with(at, &tls);
    let access = Access {
        authority: Some(path("authority.pem")),
        certificate: Some(path("host.pem")),
        key: Some(path("host.key")),
        ..Access::default()
    };
    let url = broker.url().replace("nats://", "tls://");
    assert_eq!(connects(&url, &access), Ok(()));
    let from_elsewhere = Access {
        authority: Some(path("stranger.pem")),
        ..access.clone()
    };
    let unsigned = Access {
        certificate: Some(path("stranger.pem")),
        key: Some(path("stranger.key")),
        ..access
    };
    for access in [from_elsewhere, unsigned] {
        assert!(connects(&url, &access).is_err());
    }
}
