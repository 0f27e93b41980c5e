//! Standard input and output as lines of JSON-RPC. Every request gets an answer: a client without one waits until it
//! times out. `rmcp` silently drops a line that is too long or not JSON, so the lines are read here.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, GetMeta as _, JsonRpcMessage, RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, timeout_at};

/// The longest line accepted, in bytes: four messages of the largest size that the daemon accepts.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The deepest nesting of a line: the limit of `serde_json`.
const DEPTH_MAX: usize = 127;

/// The longest wait for answers once the client sends nothing more. A `send` takes up to 10 s; a `wait` may take hours, and
/// its client is most likely gone.
const ANSWERS_WAIT: Duration = Duration::from_secs(15);

type Output = Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>;

/// A client at the other end of two streams.
pub(crate) struct LineTransport {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    output: Output,
    /// True once a request has begun the session. `rmcp` ends at anything else before that.
    has_begun: bool,
    /// The requests without an answer.
    unanswered: Arc<watch::Sender<Vec<RequestId>>>,
    /// Set once the client sends nothing more: the end of the wait for answers.
    ends_at: Option<Instant>,
}

impl LineTransport {
    /// Starts to read. At most one message is read ahead, so a client that floods the server has to wait, and two lines
    /// bound the memory.
    pub(crate) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let output: Output = Arc::new(Mutex::new(Box::new(output)));
        let (admitted, messages) = mpsc::channel(1);
        tokio::spawn(read(BufReader::new(input), admitted, output.clone()));
        Self {
            messages,
            output,
            has_begun: false,
            unanswered: Arc::default(),
            ends_at: None,
        }
    }

    /// Notes what a message begins or gives up; false if no handler here takes it.
    fn admits(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                self.unanswered.send_modify(|ids| ids.push(id));
                let request = &request.request;
                let is_probe = matches!(request, ClientRequest::DiscoverRequest(_));
                self.has_begun |= matches!(request, ClientRequest::InitializeRequest(_))
                    || !is_probe && request.get_meta().protocol_version().is_some();
                return true;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                {
                    let given_up = cancelled.params.request_id.as_ref();
                    self.unanswered
                        .send_modify(|ids| ids.retain(|id| Some(id) != given_up));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        self.has_begun
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let (output, unanswered) = (self.output.clone(), self.unanswered.clone());
        async move {
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            let written = write(&output, &message).await;
            unanswered.send_modify(|ids| {
                let at = ids.iter().position(|id| Some(id) == answered.as_ref());
                at.map(|at| ids.swap_remove(at));
            });
            written
        }
    }

    /// Returns the next message. A client that closes its end, as a pipe or a file does, still reads answers. After the
    /// end `rmcp` allows running calls 5 s, and a `send` may take 10, so this passes the end on only after the answers.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while let Some(message) = self.messages.recv().await {
            if self.admits(&message) {
                return Some(message);
            }
        }
        let ends_at = *self
            .ends_at
            .get_or_insert_with(|| Instant::now() + ANSWERS_WAIT);
        let mut unanswered = self.unanswered.subscribe();
        // When the time is up, `rmcp` ends what still runs.
        let _ = timeout_at(ends_at, unanswered.wait_for(Vec::is_empty)).await;
        None
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

async fn write(output: &Output, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// Reads until the client is gone, or the server takes no more messages.
async fn read(
    mut input: impl AsyncBufRead + Unpin,
    admitted: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    output: Output,
) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut input).take(LINE_BYTES_MAX as u64 + 1);
        match bounded.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_cut = line.len() > LINE_BYTES_MAX && line.last() != Some(&b'\n');
        let refused = if is_cut {
            LineRefusal::parse(
                "the line is longer than 1 MiB; send less in one message: findings or text of up to 256 KiB",
            )
        } else {
            match message(&line) {
                Ok(None) => continue,
                Ok(Some(message)) => {
                    if admitted.send(message).await.is_err() {
                        return;
                    }
                    continue;
                }
                Err(refused) => refused,
            }
        };
        if write(&output, &refused.json()).await.is_err() {
            return;
        }
        if is_cut && skip_line(&mut input).await.is_err() {
            return;
        }
    }
}

/// Passes over the rest of a line.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf().await?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        // The line feed stays: alone it is a blank line, which gets no reply.
        let passed = end.unwrap_or(buffer.len());
        let is_over = end.is_some() || buffer.is_empty();
        input.consume(passed);
        if is_over {
            return Ok(());
        }
    }
}

/// The reason why a line is not a message, and the id of the request that it may have been.
#[derive(Debug, PartialEq)]
struct LineRefusal {
    code: ErrorCode,
    id: Value,
    message: String,
}

impl LineRefusal {
    fn parse(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::PARSE_ERROR,
            id: Value::Null,
            message: message.into(),
        }
    }

    fn json(&self) -> Value {
        let Self { code, id, message } = self;
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
    }
}

/// Reads the message in a line. A blank line has none, and neither has an unknown notification; both get no reply.
fn message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, LineRefusal> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        LineRefusal::parse(if error.to_string().starts_with("recursion limit") {
            format!("the line nests deeper than {DEPTH_MAX} levels; nest the arguments less")
        } else {
            format!("the line is not JSON ({error}); send one JSON object on a line")
        })
    })?;
    let id = Some(&value["id"]).filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let id = id.cloned();
    let is_notification = value.get("id").is_none() && value["method"].is_string();
    let is_answer = value.get("result").is_some() || value.get("error").is_some();
    match serde_json::from_value(value) {
        Ok(JsonRpcMessage::Request(request)) if is_wrong_initialize(&request.request) => {
            Err(LineRefusal {
                code: ErrorCode::INVALID_PARAMS,
                id: id.unwrap_or_default(),
                message: "`initialize` does not take these `params`; give `protocolVersion`, a text such as \"2025-11-25\", `capabilities`, and `clientInfo` with `name` and `version`"
                    .to_owned(),
            })
        }
        Ok(message) => Ok(Some(message)),
        // An invalid answer gets no answer: two confused peers would go on forever.
        Err(_) if is_notification || is_answer => Ok(None),
        Err(_) => Err(LineRefusal {
            code: ErrorCode::INVALID_REQUEST,
            id: id.unwrap_or_default(),
            message: "the line is no request; send one JSON object with `jsonrpc` \"2.0\", an `id` (a text or a whole number), a `method` and its `params`"
                .to_owned(),
        }),
    }
}

/// True if the request is an `initialize` whose parameters do not fit, which `rmcp` takes for one of a newer protocol.
fn is_wrong_initialize(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CustomRequest(custom) if custom.method == "initialize")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code and the id of the reply to a line; `None` if it is a message or gets no reply.
    fn reply(line: &[u8]) -> Option<(i32, Value)> {
        message(line)
            .err()
            .map(|refused| (refused.code.0, refused.id))
    }

    #[test]
    fn a_line_that_is_no_message_is_answered() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for (line, code, id) in [
            ("no JSON", -32700, Value::Null),
            (r#"{"jsonrpc": "2.0", "id": 1"#, -32700, Value::Null),
            ("{} {}", -32700, Value::Null),
            (&nested(DEPTH_MAX + 1), -32700, Value::Null),
            (&nested(DEPTH_MAX), -32600, Value::Null),
            ("5", -32600, Value::Null),
            ("{}", -32600, Value::Null),
            (
                r#"{"jsonrpc": "1.0", "id": 7, "method": "ping"}"#,
                -32600,
                json!(7),
            ),
            (r#"{"id": -7, "method": 5}"#, -32600, json!(-7)),
            (r#"{"id": 18446744073709551615}"#, -32600, json!(u64::MAX)),
            (r#"{"id": 7.5}"#, -32600, Value::Null),
            (
                r#"{"jsonrpc": "2.0", "id": "a", "method": 5}"#,
                -32600,
                json!("a"),
            ),
            (
                r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#,
                -32600,
                Value::Null,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": 5}}"#,
                -32602,
                json!(3),
            ),
        ] {
            assert_eq!(reply(line.as_bytes()), Some((code, id)), "{line}");
        }
        assert_eq!(reply(b"\"\xff\""), Some((-32700, Value::Null)));
    }

    #[test]
    fn a_message_is_read_and_a_notification_or_an_answer_gets_no_reply() {
        for (line, is_message) in [
            (
                &br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#[..],
                true,
            ),
            (
                b"\xEF\xBB\xBF{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\r\n",
                true,
            ),
            (
                br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
                true,
            ),
            (
                br#"{"jsonrpc": "1.0", "method": "no/such/notification"}"#,
                false,
            ),
            (br#"{"jsonrpc": "2.0", "id": null, "error": 5}"#, false),
            (b" \r\n", false),
        ] {
            let text = String::from_utf8_lossy(line);
            let read = message(line).unwrap_or_else(|refused| panic!("{text}: {refused:?}"));
            assert_eq!(read.is_some(), is_message, "{text}");
        }
    }

    const INITIALIZE: &[u8] = br#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
"#;

    /// A client that sends these bytes and then closes its end.
    fn client(bytes: &[&[u8]]) -> LineTransport {
        LineTransport::new(std::io::Cursor::new(bytes.concat()), tokio::io::sink())
    }

    fn answer(id: i64) -> TxJsonRpcMessage<RoleServer> {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        serde_json::from_value(answer).expect("an answer")
    }

    /// True if the transport goes on, although its reader has had time to see the end.
    async fn goes_on(end: &mut (impl Future + Unpin)) -> bool {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        tokio::select! {
            biased;
            _ = end => false,
            () = std::future::ready(()) => true,
        }
    }

    const CALL: &[u8] =
        b"{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"tools/call\", \"params\": {\"name\": \"send\"}}\n";

    #[tokio::test]
    async fn a_client_that_closes_its_end_gets_its_answers_first() {
        let mut lines = client(&[INITIALIZE, CALL]);
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().await.is_some());
        let (first, second) = (lines.send(answer(1)), lines.send(answer(2)));
        let mut end = std::pin::pin!(lines.receive());
        assert!(goes_on(&mut end).await);
        first.await.expect("nobody fails");
        assert!(goes_on(&mut end).await);
        second.await.expect("nobody fails");
        assert!(end.await.is_none());
    }

    #[tokio::test]
    async fn the_end_waits_for_no_answer_that_was_given_up_or_takes_too_long() {
        let cancelled = b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/cancelled\", \"params\": {\"requestId\": 2}}\n";
        let mut lines = client(&[INITIALIZE, CALL, cancelled]);
        for _ in 0..3 {
            assert!(lines.receive().await.is_some());
        }
        lines.send(answer(1)).await.expect("nobody fails");
        let mut end = std::pin::pin!(lines.receive());
        assert!(!goes_on(&mut end).await);
        let mut lines = client(&[INITIALIZE]);
        assert!(lines.receive().await.is_some());
        lines.ends_at = Some(Instant::now());
        assert!(lines.receive().await.is_none());
    }

    #[tokio::test]
    async fn what_comes_before_the_session_and_asks_nothing_is_passed_over() {
        let mut lines = client(&[
            b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n",
            b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n",
            INITIALIZE,
            b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n",
        ]);
        let message = lines.receive().await;
        assert!(
            matches!(&message, Some(JsonRpcMessage::Request(request)) if request.id == RequestId::Number(1)),
            "{message:?}"
        );
        let message = lines.receive().await;
        assert!(
            matches!(message, Some(JsonRpcMessage::Notification(_))),
            "{message:?}"
        );
    }

    #[tokio::test]
    async fn a_session_begins_with_a_request_for_one_and_not_with_a_probe() {
        let meta = r#"{"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}"#;
        let request = |method: &str, params: &str| {
            format!(
                "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"{method}\", \"params\": {params}}}\n"
            )
        };
        let notification = "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n";
        for (request, begins) in [
            (String::from_utf8_lossy(INITIALIZE).into_owned(), true),
            (request("tools/list", meta), true),
            (request("tools/list", "{}"), false),
            (request("server/discover", meta), false),
        ] {
            let mut lines = client(&[request.as_bytes(), notification.as_bytes()]);
            assert!(lines.receive().await.is_some(), "{request}");
            lines.ends_at = Some(Instant::now());
            assert_eq!(lines.receive().await.is_some(), begins, "{request}");
        }
    }

    #[tokio::test]
    async fn what_is_closed_is_at_its_end_for_the_client() {
        let (mut client, server) = tokio::io::duplex(1024);
        let (input, output) = tokio::io::split(server);
        let mut lines = LineTransport::new(input, output);
        lines.close().await.expect("the client is there");
        let mut buffer = [0];
        let mut end = std::pin::pin!(client.read(&mut buffer));
        assert!(!goes_on(&mut end).await);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let (mut client, server) = tokio::io::duplex(1024);
        let (input, output) = tokio::io::split(server);
        let mut lines = LineTransport::new(input, output);
        let ping = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n";
        let fitting = [&vec![b' '; LINE_BYTES_MAX - ping.len() + 1][..], &ping[..]].concat();
        let long = [&vec![b' '; 3 * LINE_BYTES_MAX][..], b"x\n"].concat();
        let client = tokio::spawn(async move {
            for line in [&fitting[..], &long[..], &ping[..]] {
                client.write_all(line).await.expect("the server reads");
            }
            let mut replies = String::new();
            client.shutdown().await.expect("the server is there");
            client.read_to_string(&mut replies).await.expect("text");
            replies
        });
        assert!(lines.receive().await.is_some(), "a line of 1 MiB is read");
        assert!(lines.receive().await.is_some(), "so is the one after it");
        // No server answers them here.
        lines.ends_at = Some(Instant::now());
        assert!(lines.receive().await.is_none());
        lines.close().await.expect("the client is there");
        drop(lines);
        let replies = client.await.expect("no panic");
        assert_eq!(replies.lines().count(), 1, "{replies}");
        assert!(
            replies.contains("-32700") && replies.contains("1 MiB"),
            "{replies}"
        );
    }
}
