//! `hartrace view`: a page for traces of any size, served on this machine.

use crate::args::View;
use crate::failure::Failure;
use crate::reporting::{FileFacts, guess};
use crate::source::{How, Opened, places};
use crate::talk::{Talk, end_on_signal, interrupted};
use crate::viewing::{Code, index, index_of_log};
use hartrace_capture::input::is_stdin;
use hartrace_capture::trace::Replay;
use hartrace_flow::{Consumer, HartId, Image};
use hartrace_print::diagnostic::{Code as DiagnosticCode, Diagnostic};
use hartrace_report::http::{Answer, Request, Server};
use hartrace_report::{Live, Replayed};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

pub(super) fn run(args: &View, talk: &Talk) -> Result<(), Failure> {
    let Opened {
        program,
        image,
        isa,
        mut source,
    } = Opened::open(&args.trace, &args.traced, "view", talk)?;
    let server = Server::new(args.port).map_err(|error| no_port(args.port, &error))?;
    let has_time = source.may_have_time()?;
    let facts = FileFacts {
        path: args.trace.clone(),
        format: source.format(),
        bytes: source.size().unwrap_or(0),
        settings: source.settings(),
        counted: None,
        warnings: guess(&source),
    };
    let code = Code {
        program: &program,
        image: &image,
        isa,
    };
    let opened = source.replay()?;
    let again = talk.silent();
    let (index, replay) = match opened {
        Ok((replay, session)) => {
            let of = (args, facts, has_time);
            let index = index((&replay, &session), of, code, talk)?;
            (index, Some(replayed(replay, &image, args.traced.hart)))
        }
        Err(log) => {
            let index = index_of_log((log, has_time), (args, &facts), code)?;
            let can_be_read_again = !is_stdin(&args.trace);
            (index, can_be_read_again.then(|| reread(args, code, &again)))
        }
    };
    let live = Mutex::new(Live::new(index, (&image, places(&program)), replay));
    serve(args, &server, &live, talk)
}

/// Decodes parts of a trace.
fn replayed(replay: Replay, image: &Image, only: Option<u32>) -> Replayed<'_> {
    Box::new(move |checkpoint, out: &mut dyn Consumer| {
        // The settings were right when the index was made.
        let _ = replay.from(image, only.map(HartId), checkpoint, out);
    })
}

/// Reads a log from its start.
fn reread<'a>(args: &'a View, code: Code<'a>, talk: &'a Talk) -> Replayed<'a> {
    Box::new(move |_, out: &mut dyn Consumer| {
        let how = How {
            only: args.traced.hart,
            single: false,
            progress: false,
            census: false,
            check: &|| Ok(()),
        };
        // The file was there when the index was made. Without it there is no answer.
        if let Ok(opened) = Opened::open(&args.trace, &args.traced, "view", talk) {
            let of = (code.program, code.image, code.isa);
            let _ = opened.source.read(of, out, &how);
        }
    })
}

/// Serves the page until Ctrl-C.
fn serve(args: &View, server: &Server, live: &Mutex<Live<'_>>, talk: &Talk) -> Result<(), Failure> {
    let url = server.url();
    let mut out = std::io::stdout().lock();
    // A reader that has gone away has no use for the page.
    if writeln!(out, "{url}").and_then(|()| out.flush()).is_err() {
        return Err(Failure::ClosedPipe);
    }
    drop(out);
    end_on_signal();
    talk.summary("press Ctrl-C to end");
    if args.open {
        open(&url, talk);
    }
    let answer = |request: &Request<'_>| -> Answer {
        let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
        live.answer(request)
    };
    server.run(&answer, &interrupted);
    Ok(())
}

/// Shows the page in the browser of the desktop.
fn open(url: &str, talk: &Talk) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null());
    if let Err(error) = command.stderr(Stdio::null()).spawn() {
        let message = format!("cannot start `{program}`: {error}");
        let help = "open the address in a browser";
        talk.warning(&Diagnostic::new(DiagnosticCode::CannotOpen, message).help(help));
    }
}

fn no_port(port: u16, error: &std::io::Error) -> Failure {
    let message = format!("cannot listen on port {port} of the loopback address: {error}");
    let help = "leave out --port to use any free one";
    Diagnostic::new(DiagnosticCode::CannotCreate, message)
        .help(help)
        .into()
}
