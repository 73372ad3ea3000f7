//! Pictures of made-up call paths, read back from the SVG.

use super::frames::{Costs, Frames, ROOT};
use super::svg::{Picture, cut, escaped};
use hartrace_analyze::Measure;
use hartrace_testkit::Random;

/// A frame as it is in the file. Lengths are hundredths of a pixel.
#[derive(Debug)]
struct Drawn {
    title: String,
    label: Option<String>,
    depth: u64,
    start: u64,
    cost: u64,
    x: u64,
    y: u64,
    width: u64,
    fill: String,
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    Some(rest.split_once(to)?.0)
}

fn read(svg: &str) -> Vec<Drawn> {
    let frames = svg.split("<g class=\"frame\"").skip(1);
    let frame = |text: &str| {
        let text = text.split("</g>").next().unwrap();
        let attribute = |name: &str| between(text, &format!(" {name}=\""), "\"").unwrap();
        let number = |name| attribute(name).replace('.', "").parse().unwrap();
        let label = text.split_once("<text ").map(|(_, text)| text);
        Drawn {
            title: between(text, "<title>", "</title>").unwrap().to_owned(),
            label: label.map(|text| between(text, ">", "<").unwrap().to_owned()),
            depth: number("data-depth"),
            start: number("data-start"),
            cost: number("data-cost"),
            x: number("x"),
            y: number("y"),
            width: number("width"),
            fill: attribute("fill").to_owned(),
        }
    };
    frames.map(frame).collect()
}

fn draw(frames: &Frames, is_difference: bool) -> String {
    let placed = frames.place();
    let picture = Picture::new("title", Measure::Instructions, is_difference, &placed);
    let mut out = Vec::new();
    picture.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Paths as `a;b;c`, with their own cost before and now.
fn frames(paths: &[(&str, u64, u64)]) -> Frames {
    let mut frames = Frames::new();
    for &(path, before, now) in paths {
        let names = path.split(';').map(str::to_owned);
        let frame = names.fold(ROOT, |parent, name| frames.child(parent, name));
        frames.cost(frame, Costs { before, now });
    }
    frames
}

fn random_frames(seed: u64) -> Frames {
    let mut random = Random::new(seed);
    let mut frames = Frames::new();
    let mut ids = vec![ROOT];
    for _ in 0..400 {
        let parent = ids[random.index(ids.len())];
        let id = frames.child(parent, format!("f{}", random.below(40)));
        let (before, now) = (random.bits(12), random.bits(40));
        frames.cost(id, Costs { before, now });
        ids.push(id);
    }
    frames
}

/// Every frame is on its caller, callees do not overlap, and what they leave is what
/// the caller cost itself and what is too narrow.
#[test]
fn callees_are_inside_their_caller() {
    for seed in 0..50 {
        let drawn = read(&draw(&random_frames(seed), false));
        let all = &drawn[0];
        assert_eq!((all.x, all.width, all.depth), (1000, 118_000, 0));
        // The frames below the next one, and where the next callee of each may start.
        let mut path: Vec<(&Drawn, u64, u64)> = vec![(all, all.x, 0)];
        for frame in &drawn[1..] {
            while path.len() as u64 > frame.depth {
                path.pop();
            }
            let (caller, x, cost) = path.last_mut().unwrap();
            assert_eq!((frame.depth, frame.y + 18), (caller.depth + 1, caller.y));
            assert!(frame.x >= *x, "{frame:?} overlaps its neighbour");
            assert!(
                frame.x + frame.width <= caller.x + caller.width,
                "{frame:?}"
            );
            assert!(frame.start + frame.cost <= caller.start + caller.cost);
            assert!(frame.cost * 10_000 >= all.cost, "{frame:?} is too narrow");
            // To the hundredth of a pixel.
            let exact = frame.cost as f64 * 118_000.0 / all.cost as f64;
            assert!((frame.width as f64 - exact).abs() <= 1.0, "{frame:?}");
            *x = frame.x + frame.width;
            *cost += frame.cost;
            assert!(*cost <= caller.cost);
            path.push((frame, frame.x, 0));
        }
    }
}

#[test]
fn costs_add_up() {
    let frames = frames(&[("main;b", 0, 30), ("main;a", 0, 50), ("main", 0, 20)]);
    let svg = draw(&frames, false);
    let drawn = read(&svg);
    let seen: Vec<_> = drawn
        .iter()
        .map(|f| (&*f.title, f.start, f.width))
        .collect();
    assert_eq!(
        seen,
        [
            ("all\n100 instructions, 100.00 %; self 0", 0, 118_000),
            ("main\n100 instructions, 100.00 %; self 20", 0, 118_000),
            ("a\n50 instructions, 50.00 %; self 50", 0, 59_000),
            ("b\n30 instructions, 30.00 %; self 30", 50, 35_400),
        ]
    );
    assert!(svg.contains(">100 instructions</text>"));
}

/// Names decide, not the order in which paths were met.
#[test]
fn same_paths_are_one_frame() {
    let one = frames(&[("a;b", 0, 1), ("c", 0, 2), ("a;b", 0, 3)]);
    let two = frames(&[("c", 0, 2), ("a;b", 0, 4)]);
    assert_eq!(draw(&one, false), draw(&two, false));
    assert_eq!(draw(&one, false), draw(&one, false));
}

#[test]
fn narrow_frames_are_left_out() {
    let frames = frames(&[("a", 0, 9998), ("b", 0, 1), ("c;d", 0, 1), ("e", 5, 0)]);
    assert_eq!(read(&draw(&frames, true)).len(), 5);
    let frames = self::frames(&[("a", 0, 10_000), ("b", 0, 1)]);
    assert_eq!(read(&draw(&frames, true)).len(), 2);
}

#[test]
fn colours_show_the_own_difference() {
    let paths = [
        ("main", 10, 10),
        ("main;less", 90, 10),
        ("main;more", 10, 90),
        ("main;new", 0, 40),
    ];
    let drawn = read(&draw(&frames(&paths), true));
    let fill = |name: &str| {
        let mut found = drawn.iter().filter(|f| f.title.starts_with(name));
        found.next().unwrap().fill.as_str()
    };
    // Callers are as they were, whatever they call.
    assert_eq!((fill("all"), fill("main")), ("#e4e5e8", "#e4e5e8"));
    assert_eq!((fill("less"), fill("more")), ("#4a84e0", "#e2483d"));
    assert_eq!(fill("new"), "#e38781");
    let main = &drawn[1].title;
    let details = "main\n150 instructions, 100.00 %, before 110; self 10, before 10";
    assert_eq!(main, details);
}

#[test]
fn hostile_names_are_text() {
    let name = "<script>alert(\"1\")</script>&'\u{0}\u{1b}[31m\r\n]]>\u{202e}\u{ffff}é";
    let svg = draw(&frames(&[(name, 0, 10)]), false);
    let safe = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}]]&gt;\u{fffd}\u{fffd}é";
    assert_eq!(escaped(name), safe);
    let drawn = read(&svg);
    assert_eq!(drawn[1].label.as_deref(), Some(safe));
    assert!(drawn[1].title.starts_with(&format!("{safe}\n")));
    assert_eq!(svg.matches("<script").count(), 1);
    let is_allowed = |c: char| c == '\n' || !c.is_control();
    assert!(svg.chars().all(is_allowed));

    let placed = frames(&[("f", 0, 1)]);
    let placed = placed.place();
    let mut out = Vec::new();
    let picture = Picture::new(name, Measure::Time, false, &placed);
    picture.write(&mut out).unwrap();
    let svg = String::from_utf8(out).unwrap();
    assert_eq!(svg.matches(safe).count(), 2);
    assert!(svg.contains("1 unit of time"));
}

/// The script and the style sheet are CDATA sections.
#[test]
fn parts_are_whole() {
    let svg = draw(&frames(&[("f", 0, 1)]), false);
    assert_eq!(svg.matches("<![CDATA[").count(), 2);
    assert_eq!(svg.matches("]]>").count(), 2);
    assert!(svg.ends_with("</svg>\n"));
}

#[test]
fn long_names_are_cut() {
    assert_eq!(cut("abcdef", 6), "abcdef");
    assert_eq!(cut("abcdef", 5), "abcd…");
    assert_eq!(cut("日本語", 6), "日本語");
    assert_eq!(cut("日本語", 5), "日本…");
    assert_eq!(cut("日本語", 4), "日…");
    assert_eq!(cut("", 0), "");
    let long = "x".repeat(100_000);
    let drawn = read(&draw(&frames(&[(&long, 0, 1)]), false));
    assert!(drawn[1].title.chars().count() < 1100);
    let label = drawn[1].label.as_deref().unwrap();
    assert!(label.ends_with('…') && label.chars().count() <= 160);
}

#[test]
fn deep_and_wide_trees() {
    let mut frames = Frames::new();
    let mut id = ROOT;
    for _ in 0..5000 {
        id = frames.child(id, "f".to_owned());
    }
    for i in 0..9000 {
        let leaf = frames.child(id, format!("{i}"));
        frames.cost(leaf, Costs { before: 0, now: 1 });
    }
    let drawn = read(&draw(&frames, false));
    assert_eq!(drawn.len(), 5001 + 9000);
    assert_eq!(drawn.last().unwrap().y, 60);
    assert_eq!(drawn[0].y, 60 + 5001 * 18);
}

/// Sums that do not fit are as large as they can be.
#[test]
fn enormous_costs() {
    let drawn = read(&draw(
        &frames(&[("a", 1, u64::MAX), ("b", u64::MAX, u64::MAX)]),
        true,
    ));
    assert!(drawn.iter().all(|f| f.x + f.width <= 119_000));
}
