//! Queries from standard input, one after the other.

use crate::output::{Destination, write};
use crate::{Failure, read_stdin};
use hartrace_export::talk::{failed, say};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_sql::Session;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Runs each query up to its semicolon. On a terminal, an error does not end the shell.
pub(crate) async fn run(session: &Session, to: &Destination<'_>) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return converse(session, to).await;
    }
    let text = read_stdin().map_err(cannot_read)?;
    for query in queries(&text).0 {
        write(session, &query, to).await?;
    }
    Ok(())
}

async fn converse(session: &Session, to: &Destination<'_>) -> Result<(), Failure> {
    say("SQL, each query up to a semicolon; SHOW TABLES; DESCRIBE calls; \\q ends");
    let mut text = String::new();
    loop {
        let prompt = if text.trim().is_empty() { "> " } else { "  " };
        let mut err = io::stderr().lock();
        let _ = write!(err, "{prompt}").and_then(|()| err.flush());
        drop(err);
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        if read.map_err(cannot_read)? == 0 || line.trim() == "\\q" {
            return Ok(());
        }
        text.push_str(&line);
        let (complete, rest) = queries(&text);
        if !rest.trim().is_empty() {
            continue;
        }
        for query in complete {
            match write(session, &query, to).await {
                Err(Failure::Diagnostic(diagnostic)) => drop(failed(&diagnostic)),
                Err(Failure::Usage(message)) => say(&message),
                Err(Failure::Carried(carried)) => say(&carried.text),
                Err(Failure::ClosedPipe) => return Ok(()),
                Ok(()) => {}
            }
        }
        text.clear();
    }
}

fn cannot_read(error: io::Error) -> Failure {
    let message = format!("cannot read standard input: {error}");
    Failure::Diagnostic(Box::new(Diagnostic::new(Code::CannotRead, message)))
}

/// The queries of a text, and what follows the last semicolon. Semicolons in quotes and
/// comments end nothing. Without any semicolon at the end, the rest is a query, too.
fn queries(text: &str) -> (Vec<String>, String) {
    let mut all = Vec::new();
    let mut query = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match (quote, next) {
            (None, '-') if chars.peek() == Some(&'-') => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            (None, '\'' | '"') => quote = Some(next),
            (Some(open), next) if open == next => quote = None,
            (None, ';') => {
                all.push(std::mem::take(&mut query));
                continue;
            }
            _ => {}
        }
        query.push(next);
    }
    let rest = query.clone();
    all.push(query);
    all.retain(|query| !query.trim().is_empty());
    (all, rest)
}
