//! What the server answers, and what it does not.

use super::*;
use std::sync::atomic::AtomicBool;

fn server() -> Server {
    Server::new(0).unwrap()
}

fn echo(request: &Request<'_>) -> Answer {
    Answer::json(format!("{}|{}", request.path, request.query).into_bytes())
}

/// The answer to a request with these lines; `HOST` and `SECRET` stand for the real ones.
fn ask(server: &Server, head: &str) -> (u16, String) {
    let head = head.replace("HOST", &server.address.to_string());
    let head = head.replace("SECRET", &server.secret).replace('\n', "\r\n");
    let (answer, _) = server.judge(&head, &echo);
    (answer.status, String::from_utf8(answer.body).unwrap())
}

#[test]
fn requests_below_the_secret_are_answered() {
    let server = server();
    let (status, body) = ask(
        &server,
        "GET /SECRET/code?run=0&function=3 HTTP/1.1\nHost: HOST",
    );
    assert_eq!((status, body.as_str()), (200, "code|run=0&function=3"));
    let head = "GET /SECRET/ HTTP/1.1\nHost: HOST\nOrigin: http://HOST";
    assert_eq!(ask(&server, head).0, 200);
    assert!(server.url().starts_with("http://127.0.0.1:"));
    assert_eq!(server.secret.len(), 2 * SECRET);
    assert_ne!(server.secret, Server::new(0).unwrap().secret);
}

#[test]
fn others_get_nothing() {
    let server = server();
    let wrong = "0".repeat(server.secret.len());
    let cases = [
        (404, "GET / HTTP/1.1\nHost: HOST".to_owned()),
        (404, format!("GET /{wrong} HTTP/1.1\nHost: HOST")),
        (404, "GET SECRET/ HTTP/1.1\nHost: HOST".to_owned()),
        (403, "GET /SECRET HTTP/1.1\nHost: example.com".to_owned()),
        (404, format!("GET /{wrong}/ HTTP/1.1\nHost: HOST")),
        (404, "GET /../SECRET/ HTTP/1.1\nHost: HOST".to_owned()),
        (404, "GET /SECRETx/ HTTP/1.1\nHost: HOST".to_owned()),
        (403, "GET /SECRET/ HTTP/1.1\nHost: example.com".to_owned()),
        (403, "GET /SECRET/ HTTP/1.1".to_owned()),
        (
            403,
            "GET /SECRET/ HTTP/1.1\nHost: HOST\nHost: HOST".to_owned(),
        ),
        (
            403,
            "GET /SECRET/ HTTP/1.1\nHost: HOST\nOrigin: http://example.com".to_owned(),
        ),
        (
            403,
            "GET /SECRET/ HTTP/1.1\nHost: HOST\nOrigin: null".to_owned(),
        ),
        (
            403,
            "GET /SECRET/ HTTP/1.1\nHost: HOST\nSec-Fetch-Site: cross-site".to_owned(),
        ),
        (
            403,
            "GET /SECRET/ HTTP/1.1\nHost: HOST\nnonsense".to_owned(),
        ),
        (405, "POST /SECRET/ HTTP/1.1\nHost: HOST".to_owned()),
        (405, "DELETE /SECRET/ HTTP/1.1\nHost: HOST".to_owned()),
        (400, "GET /SECRET/".to_owned()),
        (400, "GET /SECRET/ HTTP/2 x\nHost: HOST".to_owned()),
        (400, String::new()),
    ];
    for (status, head) in cases {
        assert_eq!(ask(&server, &head).0, status, "{head}");
    }
}

/// Without the last slash, the page would ask for its data above the secret path.
#[test]
fn an_address_without_its_last_slash_leads_to_the_page() {
    let server = server();
    let head = format!(
        "GET /{} HTTP/1.1\r\nHost: {}",
        server.secret, server.address
    );
    let (answer, _) = server.judge(&head, &echo);
    assert_eq!(answer.status, 308);
    let location = format!("Location: /{}/\r\n", server.secret);
    assert!(answer.head().contains(&location), "{}", answer.head());
}

#[test]
fn other_methods_learn_which_are_allowed() {
    let answer = Answer::only_get();
    assert!(
        answer
            .head()
            .starts_with("HTTP/1.1 405 Method Not Allowed\r\n")
    );
    assert!(answer.head().contains("\r\nAllow: GET, HEAD\r\n"));
}

/// Byte after byte, each in time: the request as a whole is not.
#[test]
fn a_slow_client_does_not_keep_a_connection() {
    let patience = Duration::from_millis(150);
    let (server, over) = (
        Server {
            patience,
            ..server()
        },
        AtomicBool::new(false),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&echo, &|| over.load(Ordering::SeqCst)));
        let mut stream = TcpStream::connect(server.address).unwrap();
        let since = Instant::now();
        let sent = (0..600).take_while(|_| {
            std::thread::sleep(Duration::from_millis(10));
            stream.write_all(b"x").is_ok()
        });
        let sent = sent.count();
        assert!(sent < 600, "{:?}", since.elapsed());
        over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn fields_of_a_query() {
    let request = Request {
        path: "timeline",
        query: "track=2&from=12.75&until=x&pixels=-1",
    };
    assert_eq!(request.number("track"), Some(2));
    assert_eq!(request.number("from"), Some(12));
    assert_eq!(
        (request.number("until"), request.number("pixels")),
        (None, None)
    );
    assert_eq!(
        (request.field("until"), request.field("none")),
        (Some("x"), None)
    );
}

/// Over a real connection: an answer, only its head, too many bytes, and a client that
/// says nothing does not keep others waiting.
#[test]
fn connections() {
    let (server, over) = (server(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&echo, &|| over.load(Ordering::SeqCst)));
        converse(&server);
        over.store(true, Ordering::SeqCst);
    });
}

fn converse(server: &Server) {
    let silent = TcpStream::connect(server.address).unwrap();
    let get = |head: String| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    let (host, secret) = (server.address, &server.secret);
    let head = |method: &str| format!("{method} /{secret}/a?b HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let answer = get(head("GET"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\na|b"), "{answer}");
    let only = get(head("HEAD"));
    assert!(only.contains("Content-Length: 3\r\n") && only.ends_with("\r\n\r\n"));
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2 * MAX_REQUEST));
    let answer = get(long);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    drop(silent);
}
