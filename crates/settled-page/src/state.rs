//! Everything an answer needs, and the one way to read the workspace.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use cockpit::Follower;
use message_schema::id::AgentName;
use spool::SpoolError;
use workspace::{clock, shell};

use crate::door::Keys;
use crate::draw::{self, Look};

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// An agent runs as the same user.
    #[error(
        "a person decides with --act, and {0} runs as the same user: a script of its own could open the page as well; \
         leave out --act, or let agents run as other users"
    )]
    SharedUser(AgentName),
    /// Without a host name no browser could ask for the page.
    #[error(
        "a socket needs --host, the name that its proxy is asked for, such as reviews.example.org: the page answers to no \
         other name"
    )]
    NoHost,
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] SpoolError),
    /// A record cannot hold the name of the person who decides.
    #[error("{0}")]
    Name(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Everything an answer needs.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) root: PathBuf,
    pub(crate) keys: Arc<Keys>,
    pub(crate) followers: Arc<AtomicUsize>,
    /// The person who decides; `None` if the page only shows.
    pub(crate) by: Option<Arc<str>>,
    pub(crate) follower: Arc<Mutex<Follower>>,
}

impl Site {
    /// Reads the current state of the workspace. A concurrent request waits, for milliseconds.
    #[expect(
        clippy::result_large_err,
        reason = "the error is the page that is sent, once for each request"
    )]
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        see: impl FnOnce(&Follower, &Look<'_>) -> T + Send + 'static,
    ) -> Result<T, Response> {
        let site = self.clone();
        let seen = tokio::task::spawn_blocking(move || {
            let mut follower = site.follower.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = follower.refresh() {
                // Perhaps the ledger was restored to an older state: read it from the start.
                match Follower::open(&site.root) {
                    Ok(anew) => *follower = anew,
                    Err(_) => return Err(site.failed(&error)),
                }
            }
            let root = shell::quoted(site.root.as_os_str());
            let spell = move |agent: Option<&AgentName>, words: &str| {
                let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
                format!("settled {words} --root {root}{agent}")
            };
            let look = Look {
                now: clock::now(),
                spell: &spell,
                by: site.by.as_deref(),
                form: &site.keys.form,
                order: clock::new_order_id,
            };
            Ok(see(&follower, &look))
        });
        let broken = |_| Err(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        seen.await.unwrap_or_else(broken)
    }

    fn failed(&self, error: &SpoolError) -> Response {
        tracing::error!("cannot read the ledger: {error}");
        let command = format!(
            "settled doctor --root {}",
            shell::quoted(self.root.as_os_str())
        );
        let page = draw::unreadable_ledger(&error.to_string(), &command);
        (StatusCode::SERVICE_UNAVAILABLE, page).into_response()
    }
}
