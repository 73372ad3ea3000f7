//! A server that answers as `hartrace view` does, from a document, for the tests of the
//! live page.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use hartrace_report::live_html;
use serde_json::{Value, json};

/// Serves a document on a port of its own; gives the address of the page.
pub(crate) fn serve(document: Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser that goes away is not the server's concern.
            let _ = answer(stream, &document);
        }
    });
    format!("http://{address}/token/")
}

fn answer(mut stream: TcpStream, document: &Value) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let target = line.split(' ').nth(1).unwrap_or_default();
    let target = target.strip_prefix("/token/").unwrap_or("?");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (status, kind, body) = if path.is_empty() {
        ("200 OK", "text/html", live_html())
    } else {
        match part(document, path, query) {
            Some(value) => ("200 OK", "application/json", value.to_string()),
            None => ("404 Not Found", "text/plain", String::new()),
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A number of a query.
fn number(query: &str, key: &str) -> Option<f64> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

fn part(document: &Value, path: &str, query: &str) -> Option<Value> {
    let run = &document["runs"][0];
    match path {
        "report.json" => {
            let mut light = document.clone();
            light["runs"][0]["code"] = json!([]);
            light["runs"][0]["sources"] = json!([]);
            for track in light["runs"][0]["tracks"].as_array_mut()? {
                track["slices"] = Value::Null;
            }
            Some(light)
        }
        "timeline" => {
            let slices = &run["tracks"][number(query, "track")? as usize]["slices"];
            let mut answer = window(
                slices,
                number(query, "from")?,
                number(query, "until")?,
                number(query, "pixels")?,
            );
            if let Some(lack) = document.get("lacks") {
                answer["lack"] = lack.clone();
            }
            Some(answer)
        }
        "code" => Some(json!({ "rows": run["code"][number(query, "function")? as usize]["rows"] })),
        "source" => Some(run["sources"][0].clone()),
        "instructions" => Some(run["endings"][0]["rows"].clone()),
        "search" => {
            // The first of the functions is enough here.
            let list = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("function="))?;
            let function = list.split(',').next()?.parse().ok()?;
            Some(search(
                &run["tracks"][0]["slices"],
                function,
                number(query, "from")?,
            ))
        }
        _ => None,
    }
}

/// The slices of a window that are not narrower than a pixel.
fn window(slices: &Value, from: f64, until: f64, pixels: f64) -> Value {
    let columns = [
        "begin", "end", "depth", "function", "kind", "flags", "merged",
    ];
    let value = |column: &str, row: usize| slices[column][row].as_f64().unwrap();
    let rows = 0..slices["begin"].as_array().unwrap().len();
    let seen: Vec<usize> = rows
        .filter(|row| {
            let (begin, end) = (value("begin", *row), value("end", *row));
            begin < until && end > from && end - begin >= (until - from) / pixels
        })
        .collect();
    let pick = |column: &str| {
        Value::Array(
            seen.iter()
                .map(|row| slices[column][*row].clone())
                .collect(),
        )
    };
    Value::Object(
        columns
            .iter()
            .map(|column| ((*column).to_owned(), pick(column)))
            .collect(),
    )
}

fn search(slices: &Value, function: f64, from: f64) -> Value {
    let found = (0..slices["begin"].as_array().unwrap().len()).find(|row| {
        slices["function"][*row].as_f64() == Some(function)
            && slices["begin"][*row].as_f64() > Some(from)
    });
    found.map_or(Value::Null, |row| {
        json!({ "track": 0, "begin": slices["begin"][row], "end": slices["end"][row], "depth": slices["depth"][row], "function": function })
    })
}
