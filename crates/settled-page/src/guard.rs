//! Refuses requests with a wrong `Host` or `Origin`, without a session, or with a wrong token, and logs each. Runs
//! before anything of the mailroom is read.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use message_schema::line::escaped;

use crate::door::{Keys, is_same};
use crate::draw;
use crate::state::Site;

/// The content security policy: a page may load from and send to its own origin only, and contains no inline script or
/// style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The reason why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forbidden {
    Host,
    Origin,
    Token,
    Session,
}

/// Runs before every answer.
pub(crate) async fn guard(State(site): State<Site>, request: Request, next: Next) -> Response {
    let response = match admitted(&site.keys, &request) {
        Ok(Admitted::Known) => next.run(request).await,
        Ok(Admitted::WithToken) => enter(&site.keys, &request),
        Err(refused) => refuse(refused, &request),
    };
    with_policy(response)
}

enum Admitted {
    /// It has the cookie.
    Known,
    /// It follows the printed link.
    WithToken,
}

fn admitted(keys: &Keys, request: &Request) -> Result<Admitted, Forbidden> {
    let headers = request.headers();
    let host = only(headers, header::HOST, Forbidden::Host)?.ok_or(Forbidden::Host)?;
    // A request to a proxy names its host in the address as well, and that one counts.
    let asked = request.uri().authority().map_or(host, Authority::as_str);
    if asked != host || !keys.hosts.iter().any(|known| known == host) {
        return Err(Forbidden::Host);
    }
    let origin = only(headers, header::ORIGIN, Forbidden::Origin)?;
    let is_ours = |origin: &str| {
        let name = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        name == Some(host)
    };
    // A request that changes something must name its origin.
    let is_read = *request.method() == Method::GET || *request.method() == Method::HEAD;
    if !origin.map_or(is_read, is_ours) {
        return Err(Forbidden::Origin);
    }
    if let Some(token) = token(request) {
        let is_right = is_read && is_same(token, &keys.token);
        return is_right
            .then_some(Admitted::WithToken)
            .ok_or(Forbidden::Token);
    }
    let is_known =
        cookies(headers).any(|(name, value)| name == keys.cookie && is_same(value, &keys.session));
    is_known
        .then_some(Admitted::Known)
        .ok_or(Forbidden::Session)
}

fn token(request: &Request) -> Option<&str> {
    let query = request.uri().query()?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="))
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Returns the header's value, if it is there; refuses one that is no text or comes twice, which others could read in
/// another way.
fn only(
    headers: &HeaderMap,
    name: header::HeaderName,
    otherwise: Forbidden,
) -> Result<Option<&str>, Forbidden> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| otherwise),
        (Some(_), Some(_)) => Err(otherwise),
    }
}

/// Sets the cookie and redirects to the address without the token, which so stays out of the browser's history.
fn enter(keys: &Keys, request: &Request) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict",
        keys.cookie, keys.session
    );
    // An address that begins with two slashes would name another host.
    let place = format!("/{}", request.uri().path().trim_start_matches('/'));
    (
        StatusCode::SEE_OTHER,
        [(header::SET_COOKIE, cookie), (header::LOCATION, place)],
    )
        .into_response()
}

fn refuse(refused: Forbidden, request: &Request) -> Response {
    let shown = |name| {
        let value = request.headers().get(name);
        let value = value.map_or("-".into(), |value: &HeaderValue| {
            String::from_utf8_lossy(value.as_bytes())
        });
        escaped(&value.chars().take(100).collect::<String>())
    };
    let why = match refused {
        Forbidden::Host => "another host was asked for",
        Forbidden::Origin => "it comes from another page",
        Forbidden::Token => "the token is wrong",
        Forbidden::Session => "there is no session",
    };
    tracing::warn!(
        host = shown(header::HOST),
        origin = shown(header::ORIGIN),
        path = %escaped(request.uri().path()),
        "refused: {why}"
    );
    let fix = "Open the link that settled page printed";
    draw::refusal(StatusCode::FORBIDDEN, why, fix)
}

fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer` a browser would send `Origin: null` with the page's own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
        headers.get(name)?.to_str().ok()
    }

    fn keys() -> Keys {
        Keys {
            hosts: vec!["localhost:7000".to_owned()],
            token: "a1".to_owned(),
            session: "b2".to_owned(),
            cookie: "settled".to_owned(),
            form: "c3".to_owned(),
        }
    }

    fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn who_has_the_link_or_the_cookie_is_let_in_and_nobody_else() {
        const HOST: (&str, &str) = ("host", "localhost:7000");
        const COOKIE: (&str, &str) = ("cookie", "a=1; settled=b2");
        const OURS: (&str, &str) = ("origin", "http://localhost:7000");
        const THEIRS: (&str, &str) = ("origin", "http://localhost:7001");
        let (get, post) = (Method::GET, Method::POST);
        for (method, path, headers, expected) in [
            (&get, "/", &[HOST, COOKIE][..], Ok(false)),
            (&Method::HEAD, "/", &[HOST, COOKIE], Ok(false)),
            (&get, "/", &[HOST, COOKIE, OURS], Ok(false)),
            (&get, "/?token=a1", &[HOST], Ok(true)),
            (&get, "/review?key=1&token=a1", &[HOST], Ok(true)),
            (&post, "/", &[HOST, COOKIE, OURS], Ok(false)),
            (&get, "/", &[COOKIE], Err(Forbidden::Host)),
            (&get, "/", &[("host", "evil"), COOKIE], Err(Forbidden::Host)),
            (&get, "/", &[HOST, HOST, COOKIE], Err(Forbidden::Host)),
            (&get, "http://evil/", &[HOST, COOKIE], Err(Forbidden::Host)),
            (&get, "http://localhost:7000/", &[HOST, COOKIE], Ok(false)),
            (
                &get,
                "/",
                &[HOST, COOKIE, OURS, THEIRS],
                Err(Forbidden::Origin),
            ),
            (
                &get,
                "/",
                &[HOST, COOKIE, ("origin", "\u{e9}")],
                Err(Forbidden::Origin),
            ),
            (&get, "/", &[HOST, COOKIE, THEIRS], Err(Forbidden::Origin)),
            (&post, "/", &[HOST, COOKIE, THEIRS], Err(Forbidden::Origin)),
            (&post, "/", &[HOST, COOKIE], Err(Forbidden::Origin)),
            (&get, "/?token=a2", &[HOST, COOKIE], Err(Forbidden::Token)),
            (&post, "/?token=a1", &[HOST, OURS], Err(Forbidden::Token)),
            (&get, "/", &[HOST], Err(Forbidden::Session)),
            (
                &get,
                "/",
                &[HOST, ("cookie", "settled=b3")],
                Err(Forbidden::Session),
            ),
            (
                &get,
                "/",
                &[HOST, ("cookie", "other=b2")],
                Err(Forbidden::Session),
            ),
        ] {
            let asked = request(method.clone(), path, headers);
            let told = admitted(&keys(), &asked);
            let told = told.map(|by| matches!(by, Admitted::WithToken));
            assert_eq!(told, expected, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn the_link_gives_a_cookie_and_leads_to_a_page_of_this_host() {
        for (path, place) in [("/?token=a1", "/"), ("//evil/x?token=a1", "/evil/x")] {
            let response = enter(&keys(), &request(Method::GET, path, &[]));
            assert_eq!(response.status(), StatusCode::SEE_OTHER);
            let headers = response.headers();
            assert_eq!(text(headers, header::LOCATION), Some(place));
            let cookie = "settled=b2; Path=/; HttpOnly; SameSite=Strict";
            assert_eq!(text(headers, header::SET_COOKIE), Some(cookie));
        }
    }

    #[test]
    fn who_is_not_let_in_gets_403_and_every_answer_the_policy() {
        let refused = refuse(Forbidden::Session, &request(Method::GET, "/", &[]));
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let response = with_policy(refused);
        let headers = response.headers();
        assert_eq!(text(headers, header::CONTENT_SECURITY_POLICY), Some(POLICY));
        assert_eq!(text(headers, header::X_FRAME_OPTIONS), Some("DENY"));
        assert_eq!(text(headers, header::CACHE_CONTROL), Some("no-store"));
    }
}
