//! The committed bundle is the one that its sources give.

use std::fs;

use crate::bundler;

/// `PAGE=write` writes it instead.
#[test]
fn bundle_is_up_to_date() {
    let file = bundler::page_folder().join("dist/report.html");
    let page = bundler::page();
    if std::env::var("PAGE").is_ok_and(|value| value == "write") {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &page).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == page,
        "page/dist is not what page/src gives; PAGE=write cargo test -p hartrace-report --test page bundle"
    );
}

#[test]
fn bundle_has_each_marker_once() {
    let page = bundler::page();
    for marker in ["{{connect}}", "{{data}}"] {
        assert_eq!(page.matches(marker).count(), 1, "{marker}");
    }
    assert_eq!(page.matches("{{").count(), 2);
}

/// Data becomes text nodes; nothing in the page makes markup or code of strings.
#[test]
fn bundle_makes_no_markup_and_no_code_of_strings() {
    let page = bundler::page();
    for forbidden in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "setAttribute(\"style\"",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}
