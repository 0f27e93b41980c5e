//! Answers requests: pages, events, and the files that a page needs.

use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use cockpit::Follower;

use crate::door::{Door, Keys, Listen, secret};
use crate::draw::overview::Asked;
use crate::draw::review::shown;
use crate::draw::{self, Look};
use crate::guard;
use crate::patience::Patient;
use crate::state::{PageError, Site};
use crate::{Args, act, events};

/// The longest form, in bytes.
const FORM_MAX: usize = 16 * 1024;

/// Serves until the process ends.
pub(crate) fn serve(args: &Args) -> Result<(), PageError> {
    let by = act::person(args)?;
    if matches!(args.listen, Listen::Unix(_)) && args.host.is_empty() {
        return Err(PageError::NoHost);
    }
    let root = std::path::absolute(&args.root).unwrap_or_else(|_| args.root.clone());
    let follower = Follower::open(&root)?;
    let failed = |what: String| move |source| PageError::Io { what, source };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(failed("cannot begin".to_owned()))?;
    runtime.block_on(async {
        let door = Door::open(&args.listen)
            .await
            .map_err(failed(format!("cannot listen at {}", args.listen)))?;
        let secret = || secret().map_err(failed("cannot make a token".to_owned()));
        let keys = Keys {
            hosts: door.hosts(&args.host),
            token: secret()?,
            session: secret()?,
            cookie: format!("settled_page_{}", door.port()),
            form: secret()?,
        };
        let link = keys.hosts.first().map_or_else(
            || format!("/?token={}", keys.token),
            |host| format!("http://{host}/?token={}", keys.token),
        );
        let site = Site {
            root,
            keys: Arc::new(keys),
            followers: Arc::default(),
            by: by.map(Into::into),
            follower: Arc::new(Mutex::new(follower)),
        };
        // Print the link, which holds the token, only to standard output: others read logs.
        say(&link).map_err(failed("standard output".to_owned()))?;
        let answers = router(site).into_make_service();
        match door {
            Door::Loopback(listener, _) => axum::serve(Patient(listener), answers).await,
            Door::Unix(listener) => axum::serve(Patient(listener), answers).await,
        }
        .map_err(failed("the page".to_owned()))
    })
}

fn say(link: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut out = io::stdout().lock();
    writeln!(out, "open {link}")?;
    out.flush()
}

fn router(site: Site) -> Router {
    Router::new()
        .route("/", get(overview))
        .route("/review", get(review))
        .route("/history", get(history))
        .route("/events", get(events::events))
        .route("/act", post(act::act))
        .route("/page.css", get(style))
        .route("/page.js", get(script))
        .route("/page.svg", get(icon))
        .fallback(|| async { no_page() })
        .layer(DefaultBodyLimit::max(FORM_MAX))
        .layer(from_fn_with_state(site.clone(), guard::guard))
        .with_state(site)
}

/// Answers for what this site does not have.
pub(crate) fn no_page() -> Response {
    let why = "there is no such page or review";
    draw::refusal(StatusCode::NOT_FOUND, why, "The reviews are at /")
}

async fn overview(State(site): State<Site>, Query(asked): Query<Asked>) -> Response {
    let draw = move |follower: &Follower, look: &Look<'_>| {
        draw::overview::page(&follower.overview(look.now, look.spell), &asked, look).into_response()
    };
    site.read(draw).await.unwrap_or_else(|failed| failed)
}

async fn review(State(site): State<Site>, Query(asked): Query<Asked>) -> Response {
    let draw = move |follower: &Follower, look: &Look<'_>| shown(follower, look, &asked.key, None);
    site.read(draw).await.unwrap_or_else(|failed| failed)
}

async fn history(State(site): State<Site>) -> Response {
    let draw = move |follower: &Follower, look: &Look<'_>| {
        draw::history::page(&follower.overview(look.now, look.spell), look).into_response()
    };
    site.read(draw).await.unwrap_or_else(|failed| failed)
}

async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page.css"))
}

async fn icon() -> Response {
    file("image/svg+xml", include_str!("page.svg"))
}

async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page.js"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
