//! Reads a broker's monitoring pages: `/varz` says which server it is and whether it syncs before it acknowledges,
//! `/jsz` who leads and who follows, `/healthz` whether it can write. The pages need no credentials and are often reachable
//! only from the broker's own network.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde_json::Value;

/// The time limit of connecting, and of each read and write.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest page read, in bytes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Fetches a broker's JetStream page from its monitoring port, `host:port`.
pub fn jsz(address: &str) -> Result<Value, String> {
    let page = get(address, "/jsz?streams=true&config=true")?;
    serde_json::from_str(&page).map_err(|error| format!("{address}: {error}"))
}

/// A broker's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerVars {
    /// The server's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// True if it syncs before it acknowledges.
    pub syncs: bool,
}

/// Fetches what a broker says of itself from its monitoring port, `host:port`.
pub fn varz(address: &str) -> Result<BrokerVars, String> {
    let page = get(address, "/varz")?;
    let page: Value = serde_json::from_str(&page).map_err(|error| format!("{address}: {error}"))?;
    let text = |key: &str| page[key].as_str().unwrap_or("?").to_owned();
    Ok(BrokerVars {
        name: text("server_name"),
        version: text("version"),
        syncs: page["jetstream"]["config"]["sync_always"] == true,
    })
}

/// Asks a broker whether it can write. After its disk was full, a broker says no until it is restarted.
pub fn healthz(address: &str) -> Result<(), String> {
    get(address, "/healthz").map(drop)
}

fn get(address: &str, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let mut addresses = address.to_socket_addrs().map_err(failed)?;
    let to = addresses
        .next()
        .ok_or_else(|| format!("{address}: no such host"))?;
    let mut socket = TcpStream::connect_timeout(&to, PATIENCE).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    socket.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    // With version 1.0 the answer is not chunked and ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    socket
        .take(BYTES_MAX)
        .read_to_string(&mut answer)
        .map_err(failed)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| format!("{address}: it does not speak HTTP"))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(format!("{address}: {status} {}", body.trim()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// Serves one request and returns its first line.
    fn page(answer: impl Into<String>) -> (String, JoinHandle<String>) {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
            let lines = lines.map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            socket.write_all(answer.as_bytes()).expect("an answer");
            request[0].clone()
        });
        (address, asked)
    }

    #[test]
    fn a_page_is_read_from_the_monitoring_port() {
        let (address, asked) = page("HTTP/1.0 200 OK\r\n\r\n{\"config\": {\"sync_always\": true}}");
        let read = jsz(&address).expect("a page");
        assert_eq!(read["config"]["sync_always"], true);
        let request = asked.join().expect("a request");
        assert_eq!(request, "GET /jsz?streams=true&config=true HTTP/1.0");
        let (address, asked) = page(
            "HTTP/1.0 200 OK\r\n\r\n{\"server_name\": \"n1\", \"version\": \"2.15.1\", \"jetstream\": {\"config\": {\"sync_always\": true}}}",
        );
        let expected = BrokerVars {
            name: "n1".to_owned(),
            version: "2.15.1".to_owned(),
            syncs: true,
        };
        assert_eq!(varz(&address), Ok(expected));
        assert_eq!(asked.join().expect("a request"), "GET /varz HTTP/1.0");
        let (address, _asked) = page("HTTP/1.0 200 OK\r\n\r\n{\"jetstream\": {\"config\": {}}}");
        assert!(varz(&address).is_ok_and(|vars| !vars.syncs));
        let (address, asked) = page("HTTP/1.0 200 OK\r\n\r\n{\"status\": \"ok\"}");
        assert_eq!(healthz(&address), Ok(()));
        assert_eq!(asked.join().expect("a request"), "GET /healthz HTTP/1.0");
    }

    #[test]
    fn the_page_of_a_broker_with_thousands_of_streams_is_read_whole() {
        let stream = format!("{:a<100}", "");
        let streams = vec![stream; 20_000];
        let text = serde_json::json!({"streams": streams}).to_string();
        let (address, _asked) = page(format!("HTTP/1.0 200 OK\r\n\r\n{text}"));
        let read = jsz(&address).expect("a page");
        assert_eq!(read["streams"].as_array().map(Vec::len), Some(20_000));
    }

    #[test]
    fn what_is_no_page_is_told_with_the_address() {
        for (answer, told) in [
            (
                "HTTP/1.0 503 Unavailable\r\n\r\nno disk\n",
                "HTTP/1.0 503 Unavailable no disk",
            ),
            ("200 200 \r\n", "it does not speak HTTP"),
        ] {
            let (address, _asked) = page(answer);
            assert_eq!(healthz(&address), Err(format!("{address}: {told}")));
        }
        let (address, _asked) = page("HTTP/1.0 200 OK\r\n\r\nno JSON");
        let told = jsz(&address).expect_err("no JSON");
        assert!(told.starts_with(&format!("{address}: expected")), "{told}");
        assert!(healthz("127.0.0.1").is_err(), "no port");
    }
}
