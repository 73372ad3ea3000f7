//! The page of `hartrace report` in a browser, with a trace of a real program: it shows
//! the numbers that `profile` and `coverage` print. Without chromium the tests pass.

use crate::chromium::{Browser, Tab, program};
use crate::view::Viewer;
use crate::{Folder, repository, run, text};
use serde_json::{Value, json};
use std::path::Path;

/// A recorded program and its page.
struct Recorded {
    folder: Folder,
    trace: String,
    page: String,
}

fn recorded(name: &str) -> Recorded {
    let folder = Folder::new();
    let elf = repository().join(format!("programs/{name}/{name}-rv64gc.elf"));
    let (trace, page) = (
        folder.name(&format!("{name}.ntrace")),
        folder.name("run.html"),
    );
    let written = format!("ntrace={trace}");
    succeeded(&["run", "-q", elf.to_str().unwrap(), "--trace", &written]);
    let sources = repository();
    succeeded(&[
        "report",
        &trace,
        "--source-dir",
        sources.to_str().unwrap(),
        "-o",
        &page,
    ]);
    Recorded {
        folder,
        trace,
        page,
    }
}

fn succeeded(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The functions that a view prints as lines of JSON.
fn functions(view: &str, trace: &str) -> Vec<Value> {
    let output = succeeded(&[view, trace, "-f", "json"]);
    let lines = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["type"] == "function").collect()
}

#[allow(clippy::print_stdout)]
fn browser(folder: &Folder) -> Option<Browser> {
    let program = program();
    if program.is_none() {
        println!("skipped: chromium is not installed");
    }
    Some(Browser::start(&program?, &folder.path("browser")))
}

fn open<'a>(browser: &'a mut Browser, recorded: &Recorded) -> Tab<'a> {
    let mut tab = browser.open(&format!("file://{}", recorded.page));
    tab.wait("document.documentElement?.dataset.state === 'ready'");
    tab
}

/// The cells of a table in the page, without the spaces between digits.
fn cells(tab: &mut Tab<'_>, keys: &[&str]) -> Vec<Vec<String>> {
    let script = format!(
        "(keys => {{ const heads = [...document.querySelectorAll('main thead th')].map(head => head.dataset.key); \
         return [...document.querySelectorAll('main tbody tr')].map(row => keys.map(key => {{ \
         const cell = row.cells[heads.indexOf(key)]; \
         return (cell.querySelector('.amount') ?? cell).textContent.replaceAll('\\u202f', ''); }})); }})({})",
        json!(keys)
    );
    serde_json::from_value(tab.eval(&script)).unwrap()
}

#[test]
fn page_shows_what_profile_and_coverage_print() {
    let recorded = recorded("timer");
    let Some(mut browser) = browser(&recorded.folder) else {
        return;
    };
    let mut tab = open(&mut browser, &recorded);
    tab.visit("#functions/0");
    let mut shown = cells(&mut tab, &["name", "self", "total", "calls"]);
    let mut printed: Vec<Vec<String>> = functions("profile", &recorded.trace)
        .iter()
        .map(|line| {
            let cost = |key: &str| line[key]["instructions"].to_string();
            let name = line["name"].as_str().unwrap().to_owned();
            vec![name, cost("self"), cost("total"), line["calls"].to_string()]
        })
        .collect();
    shown.sort();
    printed.sort();
    assert_eq!(shown, printed);

    tab.click_on("input[type=checkbox]");
    let titles = "[...document.querySelectorAll('main tbody tr')].map(row => [row.cells[0].textContent, row.querySelector('.full, .part, .none').title.replaceAll('\\u202f', '')])";
    let mut shown: Vec<Vec<String>> = serde_json::from_value(tab.eval(titles)).unwrap();
    let mut printed: Vec<Vec<String>> = functions("coverage", &recorded.trace)
        .iter()
        .map(|line| {
            let counts = &line["instructions"];
            let name = line["name"].as_str().unwrap().to_owned();
            vec![name, format!("{} of {}", counts["hit"], counts["all"])]
        })
        .collect();
    shown.sort();
    printed.sort();
    assert_eq!(shown, printed);
    tab.finish();
}

/// What the page is for: found by following its links.
#[test]
fn page_leads_to_the_hottest_function_and_the_longest_interrupt() {
    let recorded = recorded("timer");
    let Some(mut browser) = browser(&recorded.folder) else {
        return;
    };
    let mut tab = open(&mut browser, &recorded);
    let hottest = functions("profile", &recorded.trace)[0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        tab.text("document.querySelector('.card a.name').textContent"),
        hottest
    );
    tab.click_on(".card a.name");
    tab.wait("document.querySelectorAll('.chosen tbody tr').length > 10");
    assert_eq!(
        tab.text("document.querySelector('.chosen h2').textContent"),
        hottest
    );
    // Its source was found, and the line is executed.
    tab.click_on(".chosen tbody a.place");
    tab.wait("document.querySelector('.chosen tr.target .full, .chosen tr.target .part') !== null");
    tab.visit("#branches/0?show=never");
    assert!(tab.number("document.querySelectorAll('main tbody tr').length") > 5.0);
    tab.visit("#interrupts/0");
    let longest = tab.text("document.querySelector('.worst a').textContent");
    tab.click_on(".worst a");
    tab.wait("document.querySelector('.details h2') !== null");
    let details = tab.text("document.querySelector('.details').innerText");
    assert!(
        details.contains("trap handler") && details.contains(&format!("{longest} instructions")),
        "{details}"
    );
    tab.visit("#endings/0");
    assert_eq!(
        tab.text("document.querySelector('tr.last').cells[2].textContent"),
        "sd      a5,-1800(gp)"
    );
    tab.finish();
}

/// The page of `hartrace view`: an index of few slices, so that what is seen of a part
/// is decoded when it is looked at.
#[test]
fn live_page_shows_parts_in_detail() {
    let recorded = recorded("exceptions");
    let Some(mut browser) = browser(&recorded.folder) else {
        return;
    };
    let sources = repository();
    let index = recorded.folder.name("index");
    let viewer = Viewer::start(&[
        &recorded.trace,
        "--slices",
        "500",
        "--index",
        &index,
        "--source-dir",
        sources.to_str().unwrap(),
    ]);
    let mut tab = browser.open(&viewer.url());
    tab.wait("document.documentElement?.dataset.state === 'ready'");
    tab.visit("#timeline/0");
    tab.wait(
        "performance.getEntriesByType('resource').some(entry => entry.name.includes('timeline?'))",
    );
    tab.frames();
    tab.eval("document.querySelector('.stage-canvas').focus()");
    tab.key("Enter");
    let name = "document.querySelector('.details h2')?.textContent";
    tab.wait(&format!("{name} === '_start'"));
    tab.wait("document.querySelectorAll('.details .instructions li').length > 5");
    tab.key("/");
    tab.type_text("__cxa_throw");
    tab.key("Enter");
    tab.wait(&format!("{name} === '__cxa_throw'"));
    tab.wait("document.querySelector('.callers')?.textContent.endsWith('_start') ?? false");
    tab.click_on(".details .links a");
    tab.wait("document.querySelectorAll('.chosen tbody tr.ran').length === 5");
    tab.visit("#source/0");
    tab.wait("document.querySelectorAll('.chosen tbody tr.ran').length > 5");
    tab.visit("#timeline/0?from=1000&until=1400");
    tab.wait("performance.getEntriesByType('resource').filter(entry => /timeline.*from=[5-9]\\d\\d&/.test(entry.name)).length > 0");
    tab.frames();
    tab.eval("document.querySelector('details.visible').open = true");
    // Calls of a few instructions are seen there.
    tab.wait("[...document.querySelectorAll('details.visible tbody tr')].some(row => parseInt(row.cells[5].textContent) < 20)");
    tab.finish();
}

/// The picture in the README.
#[test]
#[ignore = "writes docs/images/report.png"]
fn picture() {
    let recorded = recorded("timer");
    let Some(mut browser) = browser(&recorded.folder) else {
        return;
    };
    let mut tab = open(&mut browser, &recorded);
    tab.send(
        "Emulation.setDeviceMetricsOverride",
        json!({ "width": 1100, "height": 560, "deviceScaleFactor": 1, "mobile": false }),
    );
    tab.visit("#timeline/0?from=4200&until=7600&track=0&at=5100");
    tab.frames();
    tab.screenshot(Path::new(&repository().join("docs/images/report.png")));
    tab.finish();
}
