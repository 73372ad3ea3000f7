//! The page in a real browser: what a reader does, with mouse and keyboard, and that
//! what is then shown is what the document says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hartrace_report::html;
use serde_json::{Value, json};

use crate::bundler;
use crate::chromium::{Browser, Tab, program};
use crate::samples;
use crate::server;

pub(crate) const READY: &str = "document.documentElement?.dataset.state === 'ready'";
pub(crate) const VIEWS: [&str; 10] = [
    "overview",
    "timeline",
    "flame",
    "functions",
    "source",
    "code",
    "branches",
    "interrupts",
    "endings",
    "trace",
];

/// Files of these tests.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("page")
}

/// The browser that all tests use, one after the other; `None` where there is none.
pub(crate) fn browser() -> Option<MutexGuard<'static, Browser>> {
    static BROWSER: OnceLock<Option<Mutex<Browser>>> = OnceLock::new();
    let browser = BROWSER.get_or_init(|| {
        let program = program()?;
        Some(Mutex::new(Browser::start(
            &program,
            &folder().join("browser"),
        )))
    });
    if browser.is_none() {
        println!("skipped: chromium is not installed");
    }
    browser
        .as_ref()
        .map(|browser| browser.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Writes a report, and gives its address.
pub(crate) fn report(name: &str, document: &Value) -> String {
    write(name, &html(document.to_string().as_bytes()))
}

fn write(name: &str, page: &str) -> String {
    let file = folder().join(format!("{name}.html"));
    fs::create_dir_all(folder()).unwrap();
    fs::write(&file, page).unwrap();
    format!("file://{}", file.display())
}

/// The document that most tests look at.
pub(crate) fn plain() -> Value {
    samples::document(vec![samples::run("video.ntrace", 2, 3000, 3)])
}

/// Opens a report in the browser.
pub(crate) fn open<'a>(browser: &'a mut Browser, name: &str, document: &Value) -> Tab<'a> {
    let mut tab = browser.open(&report(name, document));
    tab.wait(READY);
    tab
}

pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut result = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            result.push('\u{202f}');
        }
        result.push(digit);
    }
    result
}

/// How many slices of the document belong to a function.
fn slices_of(document: &Value, function: u64) -> usize {
    let tracks = document["runs"][0]["tracks"].as_array().unwrap();
    let slices = tracks
        .iter()
        .flat_map(|track| track["slices"]["function"].as_array().unwrap());
    slices
        .filter(|value| value.as_u64() == Some(function))
        .count()
}

#[test]
fn modules_pass_their_checks() {
    let Some(mut browser) = browser() else { return };
    let script = bundler::script(&bundler::page_folder().join("tests/unit.js"));
    let mut tab = browser.open("about:blank");
    tab.eval(&script);
    let result = tab.eval("unitReport");
    assert_eq!(result["failures"], json!([]));
    assert!(result["checks"].as_u64().unwrap() > 30);
}

#[test]
fn overview_answers_the_first_questions() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let mut tab = open(&mut browser, "overview", &document);
    let run = &document["runs"][0];
    let text = tab.text("document.querySelector('main').innerText");
    assert!(
        text.contains(&grouped(run["instructions"].as_u64().unwrap())),
        "instructions: {text}"
    );
    let own = run["functions"]["self"].as_array().unwrap();
    let hottest = (0..own.len())
        .max_by_key(|function| own[*function].as_u64())
        .unwrap();
    assert_eq!(
        tab.text("document.querySelector('.card a.name').textContent"),
        run["strings"][hottest]
    );
    assert!(text.contains("12 branches never taken"), "{text}");
    assert!(
        text.contains("load access fault in the handler itself"),
        "{text}"
    );
    assert!(text.contains("lw a0, 0(a5)"), "{text}");
    assert!(
        text.contains("1 234 calls shorter than 4 instructions"),
        "{text}"
    );
    assert!(tab.text("document.title").contains("video.ntrace"));
    tab.finish();
}

#[test]
fn functions_sort_and_filter() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let run = &document["runs"][0];
    let mut tab = open(&mut browser, "functions", &document);
    tab.visit("#functions/0");
    let mut calls: Vec<u64> = run["functions"]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_u64().unwrap())
        .collect();
    tab.click_on("th[data-key=calls] button");
    assert_eq!(
        tab.text("document.querySelector('th[data-key=calls]').getAttribute('aria-sort')"),
        "descending"
    );
    calls.sort_unstable_by(|a, b| b.cmp(a));
    let column = "[...document.querySelectorAll('tbody tr')].map(row => row.cells[5].textContent)";
    let expected: Vec<String> = calls.iter().map(|value| grouped(*value)).collect();
    assert_eq!(tab.eval(column), json!(expected));
    tab.click_on("th[data-key=calls] button");
    assert_eq!(
        tab.text("document.querySelector('th[data-key=calls]').getAttribute('aria-sort')"),
        "ascending"
    );
    tab.click_on("input.filter");
    tab.type_text("ROW");
    assert_eq!(
        tab.eval("[...document.querySelectorAll('tbody th')].map(cell => cell.textContent).sort()"),
        json!(["scale_row", "write_row"])
    );
    tab.finish();
}

#[test]
fn timeline_zooms_pans_and_shows_all() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "zoom", &plain());
    tab.visit("#timeline/0");
    let whole = tab.text("document.querySelector('.window').textContent");
    let (left, top, width, height) = tab.place(".stage-canvas");
    tab.wheel(left + width / 2.0, top + height / 2.0, -480.0);
    let zoomed = tab.text("document.querySelector('.window').textContent");
    assert_ne!(whole, zoomed);
    tab.wait("new URLSearchParams(location.hash.split('?')[1]).has('from')");
    let window = "(q => Number(q.get('until')) - Number(q.get('from')))(new URLSearchParams(location.hash.split('?')[1]))";
    let before = tab.number(window);
    tab.click(left + width / 2.0, top + height - 8.0);
    for key in ["w", "w", "d", "+"] {
        tab.key(key);
    }
    tab.wait(&format!("{window} < {before} / 2"));
    let panned = tab.text("document.querySelector('.window').textContent");
    tab.key("ArrowLeft");
    assert_ne!(
        panned,
        tab.text("document.querySelector('.window').textContent")
    );
    // Dragging to the right shows what was before.
    let from = "(q => Number(q.get('from')))(new URLSearchParams(location.hash.split('?')[1]))";
    let start = tab.number(from);
    let button = [
        ("button", json!("left")),
        ("buttons", json!(1)),
        ("clickCount", json!(1)),
    ];
    tab.mouse("mousePressed", left + 200.0, top + 300.0, &button);
    tab.mouse("mouseMoved", left + 300.0, top + 300.0, &button);
    tab.mouse("mouseReleased", left + 300.0, top + 300.0, &button);
    tab.wait(&format!("{from} < {start}"));
    tab.key("0");
    assert_eq!(
        whole,
        tab.text("document.querySelector('.window').textContent")
    );
    tab.finish();
}

#[test]
fn timeline_walks_by_keyboard_and_says_where_it_is() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "walk", &plain());
    tab.visit("#timeline/0");
    tab.eval("document.querySelector('.stage-canvas').focus()");
    let name = "document.querySelector('.details h2')?.textContent";
    tab.key("Enter");
    assert_eq!(tab.text(name), "main");
    tab.wait("/^main, .*depth 0/.test(document.getElementById('announcer').textContent)");
    tab.key("ArrowDown");
    assert_eq!(tab.text(name), "run_frame");
    tab.key("ArrowRight");
    assert_eq!(tab.text(name), "run_frame");
    tab.wait("new URLSearchParams(location.hash.split('?')[1]).get('depth') === '1'");
    let at = tab.number("Number(new URLSearchParams(location.hash.split('?')[1]).get('at'))");
    assert!(
        at > 0.0,
        "the second call of run_frame does not begin at {at}"
    );
    tab.key("ArrowUp");
    assert_eq!(tab.text(name), "main");
    tab.key("Escape");
    assert_eq!(
        tab.eval("document.querySelector('.details h2')"),
        Value::Null
    );
    // The page shows the same again from its address.
    let hash = tab.text("location.hash = '#timeline/0?track=1&at=0&depth=0'");
    assert!(hash.contains("track=1"));
    tab.wait("document.querySelector('.details')?.textContent.includes('hart 1')");
    // Back returns to what was seen before a link was followed.
    tab.wait("location.hash.includes('at=0')");
    tab.click_on(".details .links a");
    tab.wait("document.querySelector('.chosen h2')?.textContent === 'main'");
    tab.eval("history.back()");
    tab.wait("document.querySelector('.details')?.textContent.includes('hart 1')");
    tab.finish();
}

#[test]
fn timeline_hides_tracks() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "tracks", &plain());
    tab.visit("#timeline/0");
    tab.eval("document.querySelector('.popover').open = true");
    tab.click_on(".track-list label input");
    tab.eval("document.querySelector('.popover').open = false");
    tab.eval("document.querySelector('.stage-canvas').focus()");
    tab.key("Enter");
    let details = "document.querySelector('.details').textContent";
    assert!(tab.text(details).contains("hart 1"));
    tab.key("ArrowUp");
    assert!(tab.text(details).contains("hart 1"));
    tab.finish();
}

#[test]
fn timeline_zooms_with_two_fingers() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "pinch", &plain());
    tab.send(
        "Emulation.setTouchEmulationEnabled",
        json!({ "enabled": true, "maxTouchPoints": 2 }),
    );
    tab.visit("#timeline/0");
    let (left, top, _, _) = tab.place(".stage-canvas");
    let mut touch = |kind: &str, second: Option<f64>| {
        let fingers = second.map_or(json!([]), |x| {
            json!([{ "x": left + 300.0, "y": top + 100.0, "id": 0 }, { "x": left + x, "y": top + 100.0, "id": 1 }])
        });
        tab.send(
            "Input.dispatchTouchEvent",
            json!({ "type": kind, "touchPoints": fingers }),
        );
    };
    touch("touchStart", Some(400.0));
    touch("touchMove", Some(500.0));
    touch("touchMove", Some(700.0));
    touch("touchEnd", None);
    // Fingers four times as far apart: a quarter is seen.
    tab.wait("new URLSearchParams(location.hash.split('?')[1]).has('from')");
    let share = "(q => Number(q.get('until')) - Number(q.get('from')))(new URLSearchParams(location.hash.split('?')[1]))";
    let whole = plain()["runs"][0]["axis"]["until"].as_f64().unwrap();
    let seen = tab.number(share) / whole;
    assert!((0.24..0.26).contains(&seen), "{seen}");
    tab.finish();
}

#[test]
fn timeline_search_steps_from_hit_to_hit() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let hits = slices_of(&document, 5);
    let mut tab = open(&mut browser, "search", &document);
    tab.visit("#timeline/0");
    tab.key("/");
    assert_eq!(tab.text("document.activeElement.className"), "search");
    tab.type_text("memcpy");
    let status = "document.querySelector('.search-status').textContent";
    tab.wait(&format!("{status}.endsWith('hits')"));
    assert_eq!(tab.text(status), format!("{} hits", grouped(hits as u64)));
    tab.key("Enter");
    assert_eq!(tab.text(status), format!("1 of {}", grouped(hits as u64)));
    assert_eq!(
        tab.text("document.querySelector('.details h2').textContent"),
        "memcpy"
    );
    let first = tab.text("document.querySelector('.pairs').textContent");
    tab.key("Enter");
    assert_eq!(tab.text(status), format!("2 of {}", grouped(hits as u64)));
    assert_ne!(
        first,
        tab.text("document.querySelector('.pairs').textContent")
    );
    tab.click_on(".searchbar button");
    assert_eq!(
        first,
        tab.text("document.querySelector('.pairs').textContent")
    );
    assert!(
        tab.text("document.querySelector('.callers').textContent")
            .ends_with("main")
    );
    tab.finish();
}

#[test]
fn timeline_has_a_table_of_what_is_seen() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "table", &plain());
    tab.visit("#timeline/0");
    tab.click_on("details.visible summary");
    tab.wait("document.querySelectorAll('details.visible tbody tr').length > 50");
    assert_eq!(
        tab.text("document.querySelector('details.visible tbody th').textContent"),
        "main"
    );
    tab.click_on("details.visible tbody tr:nth-child(2) button");
    assert_eq!(
        tab.text("document.querySelector('.details h2').textContent"),
        tab.text("document.querySelector('details.visible tbody tr:nth-child(2) th').textContent")
    );
    tab.finish();
}

#[test]
fn flame_graph_zooms_on_click_and_shows_both_orders() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let mut tab = open(&mut browser, "flame", &document);
    tab.visit("#flame/0");
    let (left, top, width, _) = tab.place(".stage-canvas");
    // Ruler 22, header 20, then rows of 18: main, run_frame, decode_block.
    tab.click(left + width * 0.1, top + 42.0 + 18.0 * 2.5);
    assert_eq!(
        tab.text("document.querySelector('.details h2').textContent"),
        "decode_block"
    );
    tab.click_on(".buttons button:last-child");
    tab.click_on("input.search");
    tab.type_text("main");
    tab.wait("document.querySelector('.window').textContent.startsWith('100')");
    tab.click_on("input[value=time]");
    tab.wait("location.hash.includes('order=time')");
    assert_eq!(
        tab.number("document.querySelectorAll('.minimap').length"),
        1.0
    );
    assert_eq!(
        tab.text("document.querySelector('input.search').value"),
        "main"
    );
    tab.finish();
}

#[test]
fn code_and_source_lead_to_each_other() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let run = &document["runs"][0];
    let mut tab = open(&mut browser, "code", &document);
    tab.visit("#code/0/2");
    tab.wait("document.querySelectorAll('.chosen tbody tr').length === 24");
    let counts =
        "[...document.querySelectorAll('.chosen tbody tr')].map(row => row.cells[1].textContent)";
    let expected: Vec<String> = run["code"][2]["rows"]["count"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| grouped(value.as_u64().unwrap()))
        .collect();
    assert_eq!(tab.eval(counts), json!(expected));
    assert!(
        tab.text("document.querySelector('.chosen tbody').innerText")
            .contains("never taken")
    );
    tab.click_on(".chosen tbody a.place");
    tab.wait("document.querySelector('.chosen tr.target')?.cells[2].textContent === '23'");
    assert_eq!(
        tab.text("document.querySelector('.chosen tr.target .visually-hidden').textContent"),
        "executed"
    );
    tab.click_on(".chosen tr.target th a");
    tab.wait("document.querySelector('.chosen tr.target')?.cells[2].textContent === '0x80000200'");
    tab.eval("[...document.querySelectorAll('.chosen td a')].find(a => a.textContent === 'memcpy').click()");
    tab.wait("document.querySelector('.chosen h2')?.textContent === 'memcpy'");
    tab.finish();
}

#[test]
fn branches_that_went_one_way_are_found() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "branches", &plain());
    tab.visit("#branches/0?show=never");
    let rows = "document.querySelectorAll('tbody tr').length";
    assert_eq!(tab.number(rows), 12.0);
    assert_eq!(
        tab.text("document.querySelector('tbody th').textContent"),
        "0x8000001c"
    );
    tab.click_on("input[value=all]");
    assert_eq!(tab.number(rows), 36.0);
    tab.finish();
}

#[test]
fn the_longest_interrupt_leads_into_the_timeline() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let worst = &document["runs"][0]["interrupts"][0]["worst"][0];
    let mut tab = open(&mut browser, "interrupts", &document);
    tab.visit("#interrupts/0");
    assert_eq!(
        tab.number("document.querySelectorAll('svg[role=img]').length"),
        2.0
    );
    tab.click_on(".worst a");
    tab.wait("document.querySelector('.details h2')?.textContent === 'timer interrupt'");
    let text = tab.text("document.querySelector('.pairs').textContent");
    assert!(
        text.contains(&format!("Duration{}\u{202f}ns", worst["duration"])),
        "{text}"
    );
    let details = tab.text("document.querySelector('.details').textContent");
    assert!(
        details.contains("Causemachine timer interrupt"),
        "{details}"
    );
    tab.click_on(".details dd a.mono");
    tab.wait("document.querySelector('.chosen tr.target') !== null");
    tab.finish();
}

#[test]
fn endings_show_the_instruction_before_the_crash() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "endings", &plain());
    tab.visit("#endings/0");
    let last = tab.text("document.querySelector('tr.last').textContent");
    assert!(
        last.contains("0x8000052c") && last.contains("did not retire: load access fault"),
        "{last}"
    );
    let callers = tab.text("document.querySelector('.callers').textContent");
    assert!(
        callers.contains("0x8000020c") && callers.contains("illegal instruction in "),
        "{callers}"
    );
    tab.finish();
}

/// A page of a trace that was hardly decoded, and one whose program crashed.
#[test]
fn the_overview_warns_and_says_that_it_crashed() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    let run = &mut document["runs"][0];
    run["warnings"] = json!(["8 % of the trace was decoded."]);
    let how = "inside the handler of an exception at 0x80000520 in poke, that did not return";
    run["endings"][0]["how"] = json!(how);
    run["endings"][0]["trap"] = json!(0);
    let mut tab = open(&mut browser, "warnings", &document);
    tab.visit("#overview/0");
    let warning = tab.text("document.querySelector('.warning').textContent");
    assert!(warning.contains("8 % of the trace"), "{warning}");
    let ending = tab.text("document.querySelector('.ending').textContent");
    assert!(ending.contains(how), "{ending}");
    let trap = tab.text("document.querySelector('.ending a').getAttribute('href')");
    assert!(trap.contains("trap=0"), "{trap}");
    tab.visit(&trap);
    tab.wait("document.querySelector('.details .pairs') !== null");
    tab.finish();
}

/// What the note of an instruction says does not make it an exception.
#[test]
fn a_function_called_trap_is_no_exception() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    document["runs"][0]["endings"][0]["rows"]["kind"][0] = json!(0);
    document["runs"][0]["endings"][0]["rows"]["note"][0] = json!("to walk_trap_table");
    let mut tab = open(&mut browser, "notes", &document);
    tab.visit("#endings/0");
    tab.wait("document.body.textContent.includes('walk_trap_table')");
    let signs =
        "[...document.querySelectorAll('td .exception-sign')].map((one) => one.textContent).join()";
    let signs = tab.text(signs);
    assert!(!signs.contains("walk_trap_table"), "{signs}");
    assert!(signs.contains("did not retire"), "{signs}");
    tab.finish();
}

#[test]
fn two_runs_are_compared() {
    let Some(mut browser) = browser() else { return };
    let document = samples::document(vec![
        samples::run("old.ntrace", 1, 1500, 3),
        samples::run("new.ntrace", 1, 1700, 4),
    ]);
    let mut tab = open(&mut browser, "two", &document);
    tab.visit("#compare/0");
    let change = document["runs"][1]["instructions"].as_i64().unwrap()
        - document["runs"][0]["instructions"].as_i64().unwrap();
    let totals = tab.text("document.querySelector('.totals tbody tr').textContent");
    assert!(
        totals.contains(&format!("+{}", grouped(change.unsigned_abs()))),
        "{totals}"
    );
    tab.eval("document.querySelector('.stage-canvas').scrollIntoView()");
    tab.eval("document.querySelector('.stage-canvas').focus()");
    tab.key("Enter");
    assert!(
        tab.text("document.querySelector('.details p').textContent")
            .contains("Before: hart 0")
    );
    tab.visit("#overview/1");
    assert!(
        tab.text("document.querySelector('h1').textContent")
            .contains("new.ntrace")
    );
    tab.finish();
}

#[test]
fn hostile_names_are_text() {
    let Some(mut browser) = browser() else { return };
    let document = samples::document(vec![samples::hostile(), samples::hostile()]);
    let mut tab = open(&mut browser, "hostile", &document);
    for view in VIEWS.iter().chain(&["compare"]) {
        tab.visit(&format!("#{view}/0"));
        tab.frames();
        assert_eq!(tab.eval("window.harmed ?? null"), Value::Null, "{view}");
        assert_eq!(
            tab.number("document.querySelectorAll('script').length"),
            1.0,
            "{view}"
        );
        assert_eq!(
            tab.number("document.querySelectorAll('main img, main svg[onload]').length"),
            0.0,
            "{view}"
        );
        let wide = "document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= innerWidth";
        assert_eq!(
            tab.eval(wide),
            json!(true),
            "{view} is wider than the window"
        );
    }
    tab.visit("#functions/0");
    let names = tab.text("document.querySelector('tbody').textContent");
    assert!(names.contains(samples::HOSTILE[0]) && names.contains(samples::HOSTILE[1]));
    tab.finish();
}

#[test]
fn unpleasant_documents_open() {
    let Some(mut browser) = browser() else { return };
    let deep: Vec<(u64, u64, usize)> = (0..500)
        .map(|depth| (depth, 2000 - depth, depth as usize))
        .collect();
    let documents = [
        ("empty", samples::empty()),
        ("one", samples::only(&[(0, 1, 0)])),
        ("none", samples::only(&[])),
        ("deep", samples::only(&deep)),
    ];
    for (name, run) in documents {
        let mut tab = open(&mut browser, name, &samples::document(vec![run]));
        for view in VIEWS {
            tab.visit(&format!("#{view}/0"));
            assert_eq!(
                tab.number("document.querySelectorAll('h1').length"),
                1.0,
                "{name}: {view}"
            );
        }
        if name == "deep" {
            tab.visit("#timeline/0?track=0&at=499&depth=499");
            tab.wait("document.querySelectorAll('.callers li').length === 41");
            assert!(tab.number("document.querySelector('.stage-scroller').scrollTop") > 7000.0);
        }
        tab.finish();
    }
}

/// Long tables draw the rows that are seen, and say how many there are.
#[test]
fn long_tables_draw_what_is_seen() {
    let Some(mut browser) = browser() else { return };
    let document = samples::document(vec![samples::many_functions(30_000)]);
    let mut tab = open(&mut browser, "long", &document);
    tab.visit("#functions/0");
    let rows = "document.querySelectorAll('main tbody tr[data-row]')";
    assert!(tab.number(&format!("{rows}.length")) < 200.0);
    assert!(
        tab.number("Number(document.querySelector('main table').getAttribute('aria-rowcount'))")
            > 30_000.0
    );
    assert_eq!(
        tab.text(&format!("{rows}[0].cells[0].textContent")),
        "function_0"
    );
    tab.eval("document.querySelector('main .table').scrollTop = 15000 * 22");
    tab.frames();
    let middle = "document.elementFromPoint(200, 400).closest('tr').getAttribute('aria-rowindex')";
    let place: f64 = tab.text(middle).parse().unwrap();
    assert!((15_000.0..15_040.0).contains(&place), "{place}");
    tab.click_on("input.filter");
    tab.type_text("function_29999");
    assert_eq!(tab.number(&format!("{rows}.length")), 1.0);
    tab.visit("#code/0/20000");
    tab.wait(
        "document.querySelector('.picker tr.target')?.textContent.startsWith('function_') ?? false",
    );
    assert!(
        tab.text("document.querySelector('.chosen .note').textContent")
            .contains("not in the report")
    );
    tab.finish();
}

/// 200 000 slices pan without waiting; the limit is far above what is measured, so that
/// a busy machine does not fail.
#[test]
fn many_slices_pan_smoothly() {
    let Some(mut browser) = browser() else { return };
    let document = samples::document(vec![samples::run("many.ntrace", 1, 200_000, 5)]);
    // Not compressed: a debug build takes seconds for that.
    let page = html(b"{}").replace(">{}<", &format!(">{document}<"));
    let mut tab = browser.open(&write("many", &page));
    tab.wait(READY);
    let opened = tab.number("performance.now()");
    tab.visit("#timeline/0");
    tab.eval("document.querySelector('.stage-canvas').focus()");
    for _ in 0..3 {
        tab.key("w");
    }
    let script = "new Promise(done => { const canvas = document.querySelector('.stage-canvas'); const times = []; \
        const step = () => { const start = performance.now(); \
            canvas.dispatchEvent(new WheelEvent('wheel', { deltaX: 7, deltaY: 0, cancelable: true })); \
            requestAnimationFrame(() => setTimeout(() => { times.push(performance.now() - start); times.length < 40 ? step() : done(times.sort((a, b) => a - b)[20]); }, 0)); }; step(); })";
    let median = tab.number(script);
    println!("median frame {median:.1} ms; open after {opened:.0} ms");
    assert!(median < 100.0, "{median} ms");
    tab.finish();
}

/// Large documents are compressed.
#[test]
fn compressed_data_is_read() {
    let Some(mut browser) = browser() else { return };
    let url = report(
        "packed",
        &samples::document(vec![samples::run("packed.ntrace", 1, 60_000, 3)]),
    );
    let page = fs::read_to_string(url.trim_start_matches("file://")).unwrap();
    assert!(page.contains("application/octet-stream+base64"));
    let mut tab = browser.open(&url);
    tab.wait(READY);
    assert!(
        tab.text("document.querySelector('h1').textContent")
            .contains("packed.ntrace")
    );
    tab.finish();
}

#[test]
fn wrong_data_is_reported() {
    let Some(mut browser) = browser() else { return };
    let elements = [
        (r#"{"schema":"other"}"#, "is not a hartrace report"),
        (r#"{"schema":"hartrace-report","version":9}"#, "version 9"),
        (
            r#"{"schema":"hartrace-report","version":1,"runs":[]}"#,
            "contains no run",
        ),
        (r#"{"schema":"#, "JSON"),
    ];
    for (json, expected) in elements {
        let mut tab = browser.open(&write("wrong", &html(json.as_bytes())));
        tab.wait("document.documentElement?.dataset.state === 'failed'");
        let text = tab.text("document.querySelector('[role=alert]').textContent");
        assert!(text.contains(expected), "{text}");
        tab.finish();
    }
}

/// The same page with a server: large parts come when they are needed.
#[test]
fn live_page_asks_for_what_it_shows() {
    let Some(mut browser) = browser() else { return };
    let document = plain();
    let mut tab = browser.open(&server::serve(document.clone()));
    tab.wait(READY);
    tab.visit("#timeline/0");
    tab.eval("document.querySelector('.stage-canvas').focus()");
    let name = "document.querySelector('.details h2')?.textContent";
    // Slices come after the page is shown.
    tab.wait("performance.getEntriesByType('resource').filter(entry => entry.name.includes('timeline?')).length >= 2");
    tab.frames();
    tab.key("Enter");
    assert_eq!(tab.text(name), "main");
    tab.wait("document.querySelectorAll('.details .instructions li').length === 12");
    tab.click_on("input.search");
    tab.type_text("memcpy");
    tab.key("Enter");
    tab.wait(&format!("{name} === 'memcpy'"));
    tab.wait("document.querySelector('.callers')?.textContent.endsWith('main')");
    tab.visit("#code/0/5");
    tab.wait("document.querySelectorAll('.chosen tbody tr').length === 24");
    tab.click_on(".chosen tbody a.place");
    tab.wait("document.querySelector('.chosen tr.target')?.cells[2].textContent === '53'");
    // A link to a place in the timeline waits for its slices.
    tab.visit("#interrupts/0");
    tab.click_on(".worst a");
    tab.wait(&format!("{name} === 'timer interrupt'"));
    tab.finish();
}

/// Instructions are those at the position that was clicked, and a caller that is walked to
/// is looked at there, too.
#[test]
fn live_page_shows_instructions_where_one_clicks() {
    let Some(mut browser) = browser() else { return };
    let mut tab = browser.open(&server::serve(plain()));
    tab.wait(READY);
    tab.visit("#timeline/0");
    tab.wait("performance.getEntriesByType('resource').filter(entry => entry.name.includes('timeline?')).length >= 2");
    tab.frames();
    let (left, top, width, _) = tab.place(".stage-canvas");
    // Below the ruler and the name of the track: the outermost call.
    tab.click(left + width / 2.0, top + 66.0);
    tab.wait("document.querySelector('.details h2')?.textContent === 'main'");
    tab.wait("document.querySelectorAll('.details .instructions li').length > 0");
    let asked = "performance.getEntriesByType('resource').filter(entry => entry.name.includes('instructions?')).map(entry => Number(new URL(entry.name).searchParams.get('at')))";
    let asked = tab.eval(asked);
    let last = asked.as_array().unwrap().last().unwrap().as_f64().unwrap();
    let document = plain();
    let until = document["runs"][0]["axis"]["until"].as_f64().unwrap();
    assert!((last / until - 0.5).abs() < 0.01, "{last} of {until}");
    let heading = "document.querySelector('.details h3:last-of-type, .details div h3').textContent";
    assert!(tab.text(heading).starts_with("Instructions from time "));
    let at = "Number(new URLSearchParams(location.hash.split('?')[1]).get('at'))";
    tab.wait(&format!("{at} === {last}"));
    tab.key("ArrowDown");
    tab.wait("document.querySelector('.details h2')?.textContent !== 'main'");
    tab.key("ArrowUp");
    tab.wait("document.querySelector('.details h2')?.textContent === 'main'");
    tab.wait(&format!("{at} > 0"));
    tab.finish();
}

/// What the server does not have is said, not left out.
#[test]
fn live_page_says_what_it_lacks() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    document["lacks"] = json!("This is all that was kept.");
    let mut tab = browser.open(&server::serve(document));
    tab.wait(READY);
    tab.visit("#timeline/0");
    tab.wait("document.querySelector('.lack').textContent === 'This is all that was kept.'");
    tab.finish();
}

/// Lines whose text was not found have their counts.
#[test]
fn source_without_text_has_counts() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    let source = &mut document["runs"][0]["sources"][0];
    source["lines"] = json!([]);
    source["numbers"] = json!([13, 15, 1000]);
    source["count"] = json!([7, 0, 1234]);
    let mut tab = open(&mut browser, "without-text", &document);
    tab.visit("#source/0");
    tab.wait("document.querySelectorAll('.chosen tbody tr').length === 3");
    let text = tab.text("document.querySelector('.chosen').innerText");
    assert!(
        text.contains("The text of the file was not found"),
        "{text}"
    );
    assert!(text.contains("3 lines with code"), "{text}");
    let cells = "[...document.querySelectorAll('.chosen tbody tr')].map(row => row.cells[1].textContent + ' ' + row.cells[2].textContent)";
    assert_eq!(
        tab.eval(cells),
        json!(["7 13", "0 15", "1\u{202f}234 1000"])
    );
    let file = &document["runs"][0]["sources"][0]["file"];
    tab.visit(&format!("#source/0/{file}?line=15"));
    tab.wait("document.querySelector('.chosen tr.target')?.cells[2].textContent === '15'");
    tab.finish();
}

/// What is a selection, what is not in the trace, and which of two numbers is which.
#[test]
fn lists_say_what_they_show() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    let run = &mut document["runs"][0];
    run["functions"]["self"][9] = json!(0);
    run["functions"]["total"][9] = json!(0);
    for row in run["interrupts"].as_array_mut().unwrap() {
        row["cause"] = json!(-1);
    }
    // A jump to where the program has no code.
    let trap = run["before_traps"][0]["trap"].as_u64().unwrap() as usize;
    run["traps"]["function"][trap] = json!(-1);
    run["traps"]["epc"][trap] = json!("0x0");
    let exceptions: u64 = run["interrupts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["interrupt"] == false)
        .map(|row| row["count"].as_u64().unwrap())
        .sum();
    assert!(exceptions > 1);
    let mut tab = open(&mut browser, "lists", &document);
    let main = "document.querySelector('main').innerText";
    let text = tab.text(main);
    assert!(text.contains("11 executed, of 12"), "{text}");
    tab.visit("#functions/0");
    assert!(tab.text(main).contains("11 of 12 functions"));
    tab.visit("#endings/0");
    let text = tab.text(main);
    let selection = format!("1 of {exceptions} exceptions: the first and the last of each cause");
    assert!(text.contains(&selection), "{text}");
    assert!(text.contains(" in 0x0, hart "), "{text}");
    tab.visit("#interrupts/0");
    let text = tab.text(main);
    assert!(
        text.contains("N-Trace reports whether a trap was an interrupt or an exception"),
        "{text}"
    );
    tab.finish();
}

/// Of two traps at one position, a link leads to the one that it is about.
#[test]
fn longest_traps_lead_to_themselves() {
    let Some(mut browser) = browser() else { return };
    let mut document = plain();
    let run = &mut document["runs"][0];
    // The deeper of two traps at one position is the longest of another cause.
    let slices = &mut run["tracks"][0]["slices"];
    let kinds = slices["kind"].as_array().unwrap();
    let outer = kinds.iter().position(|kind| kind == 2).unwrap();
    let inner = outer + 1;
    slices["kind"][inner] = json!(2);
    slices["function"][inner] = json!(-1 - 13);
    let (at, depth) = (
        slices["begin"][inner].clone(),
        slices["depth"][inner].clone(),
    );
    assert_eq!(at, slices["begin"][outer]);
    let worst = json!({ "track": 0, "at": at, "duration": 5, "depth": depth, "trap": null });
    let count = run["interrupts"].as_array().unwrap().len();
    run["interrupts"][count - 1]["worst"] = json!([worst]);
    let mut tab = open(&mut browser, "longest", &document);
    tab.visit("#interrupts/0");
    tab.eval("[...document.querySelectorAll('.worst')].find(list => list.children.length === 1).querySelector('a').click()");
    tab.wait("document.querySelector('.details h2')?.textContent === 'load access fault'");
    let found = "document.querySelector('.details').innerText";
    assert!(
        tab.text(found).contains(&depth.to_string()),
        "{}",
        tab.text(found)
    );
    tab.finish();
}
