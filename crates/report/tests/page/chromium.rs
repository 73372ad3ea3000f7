//! A browser for tests: chromium without a window, driven through a pipe with the
//! messages of its DevTools protocol. No port is opened and nothing is installed.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest that one command of the protocol may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running browser. It ends when it is dropped.
pub(crate) struct Browser {
    process: Child,
    commands: File,
    answers: Receiver<Value>,
    events: VecDeque<Value>,
    last: u64,
}

/// The program to start, if there is one.
pub(crate) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Browser {
    /// Starts `program` with its files in `folder`.
    pub(crate) fn start(program: &Path, folder: &Path) -> Self {
        // The browser of the last run may still be writing there.
        for _ in 0..100 {
            if !folder.exists() || fs::remove_dir_all(folder).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        fs::create_dir_all(folder).unwrap();
        let (input, output) = (folder.join("commands"), folder.join("answers"));
        assert!(
            Command::new("mkfifo")
                .arg(&input)
                .arg(&output)
                .status()
                .unwrap()
                .success()
        );
        let mut process = Command::new("sh")
            .args(["-c", "program=$1; input=$2; output=$3; shift 3; exec \"$program\" \"$@\" 3<\"$input\" 4>\"$output\"", "sh"])
            .args([program, &input, &output])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox",
                "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-extensions", "--hide-scrollbars", "--force-device-scale-factor=1", "--window-size=1280,800"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(&input).unwrap();
        let mut output = BufReader::new(File::open(&output).unwrap());
        let (sender, answers) = channel();
        thread::spawn(move || {
            let mut message = vec![];
            while output
                .read_until(0, &mut message)
                .is_ok_and(|size| size > 0)
            {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else {
                    break;
                };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        assert!(
            process.try_wait().unwrap().is_none(),
            "the browser ended at once"
        );
        Self {
            process,
            commands,
            answers,
            events: VecDeque::new(),
            last: 0,
        }
    }

    /// Sends a command and waits for its answer; events that come before it are kept.
    fn send(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.commands
            .write_all(message.to_string().as_bytes())
            .unwrap();
        self.commands.write_all(&[0]).unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            let answer = self
                .answers
                .recv_timeout(rest)
                .unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.last {
                assert!(
                    answer.get("error").is_none(),
                    "{method}: {}",
                    answer["error"]
                );
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    /// Opens a page of its own.
    pub(crate) fn open(&mut self, url: &str) -> Tab<'_> {
        let target =
            self.send(None, "Target.createTarget", json!({ "url": "about:blank" }))["targetId"]
                .clone();
        let attached = self.send(
            None,
            "Target.attachToTarget",
            json!({ "targetId": target, "flatten": true }),
        );
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let mut tab = Tab {
            browser: self,
            session,
            target: target.as_str().unwrap().to_owned(),
            url: url.to_owned(),
        };
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Network.enable",
            "Log.enable",
        ] {
            tab.send(domain, json!({}));
        }
        tab.send(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false }),
        );
        tab.send("Page.navigate", json!({ "url": url }));
        tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A page in the browser.
pub(crate) struct Tab<'a> {
    browser: &'a mut Browser,
    session: String,
    target: String,
    url: String,
}

impl Tab<'_> {
    pub(crate) fn send(&mut self, method: &str, parameters: Value) -> Value {
        self.browser.send(Some(&self.session), method, parameters)
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let answer = self.send(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.eval(expression)
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or(f64::NAN)
    }

    /// Waits until a condition holds.
    pub(crate) fn wait(&mut self, condition: &str) {
        let until = Instant::now() + PATIENCE;
        while self.eval(condition) != json!(true) {
            assert!(Instant::now() < until, "never true: {condition}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Goes to a view by its address, and waits until it is drawn.
    pub(crate) fn visit(&mut self, hash: &str) {
        self.eval(&format!("location.hash = {}", json!(hash)));
        self.frames();
    }

    /// Waits until what was asked for is drawn.
    pub(crate) fn frames(&mut self) {
        self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))");
    }

    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64, more: &[(&str, Value)]) {
        let mut event = json!({ "type": kind, "x": x, "y": y });
        for (key, value) in more {
            event[*key] = value.clone();
        }
        self.send("Input.dispatchMouseEvent", event);
    }

    pub(crate) fn click(&mut self, x: f64, y: f64) {
        let left = [("button", json!("left")), ("clickCount", json!(1))];
        self.mouse("mouseMoved", x, y, &[]);
        self.mouse("mousePressed", x, y, &left);
        self.mouse("mouseReleased", x, y, &left);
        self.frames();
    }

    /// Clicks the middle of an element.
    pub(crate) fn click_on(&mut self, selector: &str) {
        let (x, y, width, height) = self.place(selector);
        self.click(x + width / 2.0, y + height / 2.0);
    }

    /// Left, top, width and height of an element.
    pub(crate) fn place(&mut self, selector: &str) -> (f64, f64, f64, f64) {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'nearest'}}); const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()",
            json!(selector)
        );
        let place = self.eval(&script);
        let at = |index: usize| place[index].as_f64().unwrap();
        (at(0), at(1), at(2), at(3))
    }

    pub(crate) fn wheel(&mut self, x: f64, y: f64, down: f64) {
        self.mouse(
            "mouseWheel",
            x,
            y,
            &[("deltaX", json!(0)), ("deltaY", json!(down))],
        );
        self.frames();
    }

    /// Presses a key: a letter, or a name such as `ArrowLeft`.
    pub(crate) fn key(&mut self, name: &str) {
        let code = match name {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            _ => 0,
        };
        let text = if name == "Enter" {
            "\r"
        } else if name.chars().count() == 1 {
            name
        } else {
            ""
        };
        let kind = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        self.send(
            "Input.dispatchKeyEvent",
            json!({ "type": kind, "key": name, "text": text, "windowsVirtualKeyCode": code }),
        );
        self.send(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyUp", "key": name, "windowsVirtualKeyCode": code }),
        );
        self.frames();
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.send("Input.insertText", json!({ "text": text }));
        self.frames();
    }

    pub(crate) fn media(&mut self, scheme: &str) {
        self.send(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
        self.frames();
    }

    /// A picture of what is seen.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let answer = self.send("Page.captureScreenshot", json!({ "format": "png" }));
        fs::write(file, from_base64(answer["data"].as_str().unwrap())).unwrap();
    }

    /// The pages that printing gives, as a PDF.
    pub(crate) fn print(&mut self) -> Vec<u8> {
        let answer = self.send("Page.printToPDF", json!({ "printBackground": true }));
        from_base64(answer["data"].as_str().unwrap())
    }

    /// Closes the page. It must not have reported an error nor asked for anything but itself.
    pub(crate) fn finish(mut self) {
        self.frames();
        let mut complaints = vec![];
        let events = std::mem::take(&mut self.browser.events);
        for event in events
            .iter()
            .filter(|event| event["sessionId"] == self.session.as_str())
        {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => {
                    complaints.push(format!("exception: {}", parameters["exceptionDetails"]))
                }
                "Runtime.consoleAPICalled" => {
                    complaints.push(format!("console: {}", parameters["args"]))
                }
                "Log.entryAdded" => complaints.push(format!("log: {}", parameters["entry"])),
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    // A page from disk asks for itself; a live one for what is below it.
                    let page = self.url.split('#').next().unwrap_or_default();
                    let live = page.starts_with("http") && url.starts_with(page);
                    if url != page && !live && !url.starts_with("data:,") {
                        complaints.push(format!("request: {url}"));
                    }
                }
                _ => {}
            }
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        let target = self.target.clone();
        self.browser
            .send(None, "Target.closeTarget", json!({ "targetId": target }));
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let (mut word, mut bits, mut result) = (0_u32, 0, vec![]);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        word = word << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            result.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    result
}
