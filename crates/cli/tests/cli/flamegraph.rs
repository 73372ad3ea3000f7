//! `flamegraph`: the file, and the picture in a browser. Without chromium the tests of
//! the latter pass.

use crate::chromium::{self, Browser, Tab};
use crate::report::{program, recorded};
use crate::{Folder, run, succeeds, text};
use serde_json::json;
use std::fs;

/// The picture that these arguments give.
fn picture(args: &[&str]) -> String {
    succeeds(&[&["flamegraph"], args].concat())
}

/// What the tooltip of a frame says of its cost, by name.
fn details<'a>(picture: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = picture.split_once(&format!("<title>{name}\n"))?;
    rest.split("</title>").next()
}

/// The same run is the same picture, whatever recorded it.
#[test]
fn same_run_same_picture() {
    let folder = Folder::new();
    let elf = program("recursion");
    let traces = ["ntrace", "etrace"].map(|kind| recorded(&folder, &elf, kind, &[]));
    let one = picture(&[&traces[0], "--title", "T"]);
    assert!(one.starts_with("<?xml"));
    assert!(one.contains(">ackermann</text>"));
    assert!(one == picture(&[&traces[1], "--title", "T"]));
    // Every instruction is in it.
    let all = details(&one, "all").unwrap();
    assert_eq!(all, "296 735 instructions, 100.00 %; self 0");
    // Traces are added up.
    let both = picture(&[&traces[0], &traces[0]]);
    let all = details(&both, "all").unwrap();
    assert_eq!(all, "593 470 instructions, 100.00 %; self 0");
    assert!(both.contains(&format!("<title>{0}, {0}</title>", traces[0])));
}

/// Every option that changes the picture.
#[test]
fn options() {
    let folder = Folder::new();
    let elf = program("timer");
    let config = folder.file(
        "c.toml",
        "[ntrace]
timestamps = true
",
    );
    let trace = recorded(&folder, &elf, "ntrace", &["-c", &config]);
    let plain = picture(&[&trace]);
    assert!(plain.contains("instructions") && !plain.contains("of time"));
    let timed = picture(&[&trace, "--cost", "time"]);
    let all = details(&timed, "all").unwrap();
    assert!(all.contains(" units of time, 100.00 %; self 0"), "{all}");
    let harts = picture(&[&trace, "--by", "hart"]);
    assert!(details(&harts, "[hart 0]").is_some());
    let titled = picture(&[&trace, "--title", "</title><script>\"&"]);
    assert_eq!(
        titled
            .matches("&lt;/title&gt;&lt;script&gt;&quot;&amp;")
            .count(),
        2
    );
    let file = folder.name("run.svg");
    succeeds(&["flamegraph", &trace, "-o", &file]);
    assert!(fs::read_to_string(&file).unwrap() == plain);
    // Compared with itself, nothing has changed.
    let same = picture(&[&trace, "--baseline", &trace]);
    let fills = |picture: &str| {
        let fills = picture.split(" fill=\"").skip(1);
        let mut fills: Vec<String> = fills.map(|rest| rest[..7].to_owned()).collect();
        fills.sort();
        fills.dedup();
        fills
    };
    assert_eq!(fills(&same), ["#e4e5e8"]);
    let main = details(&same, "main").unwrap();
    assert!(main.contains("before"), "{main}");
}

#[test]
fn baseline_colours_what_changed() {
    let folder = Folder::new();
    let elf = program("recursion");
    let now = recorded(&folder, &elf, "ntrace", &[]);
    let before = recorded(&folder, &elf, "etrace", &["--max-insns", "100k"]);
    let more = picture(&[&now, "--baseline", &before]);
    assert!(more.contains(", before 100 000; red: more by itself than before; blue: less<"));
    assert!(more.contains("fill=\"#e2483d\"") && !more.contains("fill=\"#4a84e0\""));
    let less = picture(&[&before, "--baseline", &now]);
    assert!(!less.contains("fill=\"#e2483d\""));
}

/// Without an instruction there is no picture, and no file.
#[test]
fn nothing_to_draw() {
    let folder = Folder::new();
    let trace = recorded(&folder, &program("timer"), "ntrace", &[]);
    let whole = fs::read(&trace).unwrap();
    fs::write(&trace, &whole[whole.len() - 6..]).unwrap();
    let file = folder.name("run.svg");
    let output = run(&["flamegraph", &trace, "-o", &file]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("error[HT0112]"));
    assert!(!folder.path("run.svg").exists());
}

/// Where a frame is: left and width in pixels; nothing if it is not shown.
const PLACE: &str = "name => { \
    const all = [...document.querySelectorAll('.frame')]; \
    const frame = all.find(one => one.querySelector('title').textContent.startsWith(name + '\\n')); \
    if (frame.style.display) return []; \
    const box = frame.querySelector('rect').getBoundingClientRect(); \
    return [box.x, box.width, box.y + box.height / 2]; }";

fn place(tab: &mut Tab<'_>, name: &str) -> Vec<f64> {
    let place = tab.eval(&format!("({PLACE})({})", json!(name)));
    serde_json::from_value(place).unwrap()
}

fn click(tab: &mut Tab<'_>, name: &str) {
    let at = place(tab, name);
    tab.click(at[0] + at[1] / 2.0, at[2]);
}

const LABELS: &str = "[...document.querySelectorAll('.frame')].map(frame => frame.querySelector('text')?.textContent ?? '')";
const FOCUS: &str = "document.activeElement.querySelector('title')?.textContent.split('\\n')[0]";

#[allow(clippy::print_stdout)]
fn browser(folder: &Folder) -> Option<Browser> {
    let program = chromium::program();
    if program.is_none() {
        println!("skipped: chromium is not installed");
    }
    Some(Browser::start(&program?, &folder.path("browser")))
}

/// Opens a picture in a window as wide as the picture is without the script.
fn open<'a>(browser: &'a mut Browser, file: &str) -> Tab<'a> {
    let mut tab = browser.open(&format!("file://{file}"));
    tab.wait("document.querySelector('.controls') !== null");
    let size = json!({ "width": 1200, "height": 600, "deviceScaleFactor": 1, "mobile": false });
    tab.send("Emulation.setDeviceMetricsOverride", size);
    tab.wait("document.documentElement.viewBox.baseVal.width === 1200");
    tab
}

#[test]
fn picture_is_zoomed_and_searched_in_a_browser() {
    let folder = Folder::new();
    let trace = recorded(&folder, &program("timer"), "etrace", &[]);
    let file = folder.name("run.svg");
    succeeds(&["flamegraph", &trace, "-o", &file, "--title", "<b>&"]);
    let Some(mut browser) = browser(&folder) else {
        return;
    };
    let mut tab = open(&mut browser, &file);
    assert_eq!(tab.text("document.title"), "<b>&");
    // The script draws what the file shows without it.
    let file = fs::read_to_string(&file).unwrap();
    let labels: Vec<String> = serde_json::from_value(tab.eval(LABELS)).unwrap();
    let drawn = file.split("<g class=\"frame\"").skip(1);
    let drawn: Vec<String> = drawn
        .map(|frame| frame.split("</g>").next().unwrap())
        .map(|frame| frame.split_once("<text ").map_or("", |(_, text)| text))
        .map(|text| text.split(['>', '<']).nth(1).unwrap_or("").to_owned())
        .collect();
    assert_eq!(labels, drawn);

    // A click zooms; what called the frame stays, what is beside it does not.
    let before = place(&mut tab, "main");
    click(&mut tab, "run_ticks");
    assert_eq!(place(&mut tab, "run_ticks")[..2], [10.0, 1180.0]);
    assert_eq!(place(&mut tab, "main")[..2], [10.0, 1180.0]);
    assert!(place(&mut tab, "[machine timer interrupt]").is_empty());
    tab.click_on(".controls button");
    assert_eq!(place(&mut tab, "main"), before);

    // Search marks frames and gives their share.
    tab.key("/");
    tab.type_text("RUN_ticks");
    let hits = "document.querySelectorAll('.hit').length";
    assert_eq!(tab.number(hits), 1.0);
    let found = tab.text("document.querySelector('output').textContent");
    let share = details(&file, "run_ticks").unwrap();
    let share = share.split(", ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(found, format!("1 frame, {share}"));
    // Enter goes to the hit, Enter zooms, an arrow leads to the caller, Escape back.
    tab.key("Enter");
    assert_eq!(tab.text(FOCUS), "run_ticks");
    tab.key("Enter");
    assert_eq!(place(&mut tab, "run_ticks")[..2], [10.0, 1180.0]);
    let found = tab.text("document.querySelector('output').textContent");
    assert_eq!(found, "1 frame, 100.00 %");
    tab.key("ArrowDown");
    assert_eq!(tab.text(FOCUS), "main");
    let about = tab.text("document.querySelector('.about').textContent");
    let details = details(&file, "main").unwrap();
    assert_eq!(about, format!("main: {details}"));
    tab.key("Escape");
    assert_eq!(place(&mut tab, "main"), before);
    tab.key("ArrowUp");
    tab.key("ArrowRight");
    assert_ne!(tab.text(FOCUS), "main");
    tab.key("/");
    tab.key("Escape");
    assert_eq!(tab.number(hits), 0.0);
    tab.type_text("/^(main|_start)$/");
    assert_eq!(tab.number(hits), 2.0);
    tab.finish();
}

/// A picture higher than the window starts with the frame of everything in sight.
#[test]
fn deep_picture_in_a_browser() {
    let folder = Folder::new();
    let trace = recorded(&folder, &program("recursion"), "ntrace", &[]);
    let file = folder.name("run.svg");
    succeeds(&["flamegraph", &trace, "-o", &file]);
    let Some(mut browser) = browser(&folder) else {
        return;
    };
    let mut tab = browser.open(&format!("file://{file}"));
    tab.wait("document.querySelector('.controls') !== null");
    tab.frames();
    let height = tab.number("innerHeight");
    assert!(tab.number("document.documentElement.height.baseVal.value") > height);
    let all = place(&mut tab, "all");
    assert!(all[2] > 0.0 && all[2] < height, "{all:?}");
    let head = tab.number("document.querySelector('.head').getBoundingClientRect().y");
    assert!(head.abs() < 1.0, "{head}");
    click(&mut tab, "main");
    assert_eq!(place(&mut tab, "main")[..2], all[..2]);
    tab.finish();
}
