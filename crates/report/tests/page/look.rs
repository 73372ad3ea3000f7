//! How the page looks: themes, contrast, paper, structure for screen readers; and
//! pictures of it.

use std::path::Path;

use serde_json::json;

use crate::browser::{READY, VIEWS, browser, folder, open, plain, report};

/// Texts that are drawn with a contrast below 4.5, or 3 where they are large.
const LOW_CONTRAST: &str = r#"(() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = colour => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
  const luminance = ([r, g, b]) => { const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const background = element => { for (let e = element; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255, 255]; };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, noscript, .visually-hidden, svg, [hidden], .sample, option") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(rgba(style.color)), luminance(background(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.add(element.tagName + "." + element.className + " " + contrast.toFixed(2) + " " + walker.currentNode.data.trim().slice(0, 20));
  }
  return [...found];
})()"#;

/// What is missing for those who do not see the page.
const STRUCTURE: &str = r#"(() => {
  const found = [];
  const all = selector => [...document.querySelectorAll(selector)];
  if (all("h1").length !== 1) found.push("h1: " + all("h1").length);
  for (const landmark of ["header", "nav", "main"]) if (!document.querySelector(landmark)) found.push("no " + landmark);
  const name = e => e.getAttribute("aria-label") || e.textContent.trim() || e.title || e.labels?.[0]?.textContent.trim();
  for (const e of all("button, a, input, select, summary, [tabindex]")) if (!name(e)) found.push("no name: " + e.outerHTML.slice(0, 80));
  for (const e of all("table")) if (!e.querySelector("th[scope]")) found.push("table without headings");
  for (const e of all("table.data")) if (!e.caption?.textContent) found.push("table without a caption");
  for (const e of all("svg")) if (!e.getAttribute("aria-label")) found.push("svg without a text");
  const ids = all("[id]").map(e => e.id);
  if (new Set(ids).size !== ids.length) found.push("ids twice: " + ids);
  const current = all("nav.views [aria-current=page]");
  if (current.length !== 1) found.push("current view: " + current.length);
  let level = 1;
  for (const e of all("main h1, main h2, main h3")) { const now = Number(e.tagName[1]); if (now > level + 1) found.push("heading skipped before " + e.textContent); level = now; }
  return found;
})()"#;

#[test]
fn both_themes_have_contrast_and_every_view_has_structure() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "contrast", &plain());
    for scheme in ["light", "dark"] {
        tab.media(scheme);
        assert_eq!(tab.text("document.documentElement.dataset.theme"), scheme);
        for view in VIEWS {
            tab.visit(&format!("#{view}/0"));
            if view == "timeline" {
                tab.eval("document.querySelectorAll('details').forEach(element => { element.open = true; })");
                tab.eval("document.querySelector('.stage-canvas').focus()");
                tab.key("Enter");
                tab.key("ArrowDown");
            }
            assert_eq!(tab.eval(LOW_CONTRAST), json!([]), "{view} in {scheme}");
            assert_eq!(tab.eval(STRUCTURE), json!([]), "{view}");
        }
    }
    tab.finish();
}

#[test]
fn theme_can_be_chosen() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "theme", &plain());
    tab.media("light");
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = tab.text(paper);
    tab.eval("(select => { select.value = 'dark'; select.dispatchEvent(new Event('change')); })(document.getElementById('theme'))");
    assert_ne!(tab.text(paper), light);
    tab.media("dark");
    tab.eval("(select => { select.value = 'light'; select.dispatchEvent(new Event('change')); })(document.getElementById('theme'))");
    assert_eq!(tab.text(paper), light);
    tab.eval("(select => { select.value = 'system'; select.dispatchEvent(new Event('change')); })(document.getElementById('theme'))");
    assert_ne!(tab.text(paper), light);
    tab.finish();
}

/// The keyboard reaches the views and the chart, and its place is seen.
#[test]
fn keyboard_reaches_everything_in_order() {
    let Some(mut browser) = browser() else { return };
    let mut tab = browser.open(&format!("{}#timeline/0", report("keyboard", &plain())));
    tab.wait(READY);
    let mut seen = vec![];
    for _ in 0..30 {
        tab.key("Tab");
        seen.push(tab.text("((e) => e.className + ' ' + e.tagName + ' ' + (e.getAttribute('aria-label') || e.textContent).slice(0, 20))(document.activeElement)"));
        let outlined = "getComputedStyle(document.activeElement).outlineStyle !== 'none'";
        assert_eq!(
            tab.eval(outlined),
            json!(true),
            "focus is not seen on {seen:?}"
        );
        if seen.last().unwrap().contains("SUMMARY Visible slices") {
            break;
        }
    }
    let text = seen.join("\n");
    let order = [
        "Skip",
        "SELECT",
        "Overview",
        "Trace",
        "search INPUT",
        "Next hit",
        "Zoom in",
        "stage-canvas CANVAS",
        "Visible slices",
    ];
    let mut from = 0;
    for part in order {
        let at = text[from..]
            .find(part)
            .unwrap_or_else(|| panic!("{part} is not reached in order:\n{text}"));
        from += at;
    }
    tab.finish();
}

#[test]
fn paper_has_overview_functions_interrupts_and_endings() {
    let Some(mut browser) = browser() else { return };
    let mut tab = open(&mut browser, "print", &plain());
    tab.visit("#timeline/0");
    let pdf = tab.print();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000);
    std::fs::write(folder().join("print.pdf"), pdf).unwrap();
    tab.eval("dispatchEvent(new Event('beforeprint'))");
    tab.send("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let text = tab.text("document.body.innerText");
    for part in [
        "Hottest functions",
        "scale_row",
        "machine timer interrupt",
        "How it ended",
        "did not retire: load access fault",
    ] {
        assert!(text.contains(part), "{part} is not printed: {text}");
    }
    assert_eq!(
        tab.eval("document.getElementById('app').checkVisibility()"),
        json!(false)
    );
    tab.eval("dispatchEvent(new Event('afterprint'))");
    assert_eq!(
        tab.number("document.querySelector('.paper').childNodes.length"),
        0.0
    );
    tab.finish();
}

/// Pictures of all views of the report in `PAGE_LOOK`, beside it.
#[test]
#[ignore = "makes pictures of a report"]
fn pictures() {
    let Some(mut browser) = browser() else { return };
    let Ok(file) = std::env::var("PAGE_LOOK") else {
        return;
    };
    for scheme in ["light", "dark"] {
        let mut tab = browser.open(&format!("file://{file}"));
        tab.media(scheme);
        tab.wait(READY);
        for view in VIEWS {
            tab.visit(&format!("#{view}/0"));
            tab.frames();
            tab.screenshot(Path::new(&format!("{file}-{view}-{scheme}.png")));
        }
        tab.finish();
    }
}
