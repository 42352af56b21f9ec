//! The file: our own styles and scripts, and data that is never markup.

use serde_json::{Value, json};

use crate::Story;
use crate::digest::sha256_base64;

/// The scripts in the order in which they need each other. Each is an ES module of its own for its
/// tests; in a page they are one.
pub(crate) const SCRIPTS: &[&str] = &[
    include_str!("../assets/format.js"),
    include_str!("../assets/dom.js"),
    include_str!("../assets/unpack.js"),
    include_str!("../assets/story.js"),
    include_str!("../assets/bands.js"),
    include_str!("../assets/state.js"),
    include_str!("../assets/colours.js"),
    include_str!("../assets/summary.js"),
    include_str!("../assets/details.js"),
    include_str!("../assets/curve.js"),
    include_str!("../assets/blocks.js"),
    include_str!("../assets/drawing.js"),
    include_str!("../assets/saving.js"),
    include_str!("../assets/phases.js"),
    include_str!("../assets/refusal.js"),
    include_str!("../assets/timeline.js"),
    include_str!("../assets/legend.js"),
    include_str!("../assets/gestures.js"),
    include_str!("../assets/range.js"),
    include_str!("../assets/trees.js"),
    include_str!("../assets/treemap.js"),
    include_str!("../assets/flame.js"),
    include_str!("../assets/moment.js"),
    include_str!("../assets/segments.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/folds.js"),
    include_str!("../assets/tableview.js"),
    include_str!("../assets/findings.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/plans.js"),
    include_str!("../assets/sweeps.js"),
    include_str!("../assets/sides.js"),
    include_str!("../assets/differences.js"),
    include_str!("../assets/arithmetic.js"),
    include_str!("../assets/leaveout.js"),
    include_str!("../assets/replayer.js"),
    include_str!("../assets/whatifwords.js"),
    include_str!("../assets/whatif.js"),
    include_str!("../assets/main.js"),
];

pub(crate) const STYLE: &str = include_str!("../assets/style.css");
const BODY: &str = include_str!("../assets/body.html");

/// What a page is made of.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// The title, in the reader's tab.
    pub title: String,
    /// Runs and files, the most important first.
    pub items: Vec<Item>,
    /// Other answers, as JSON: plans of `fit`, sweeps, differences.
    pub documents: Vec<Value>,
}

/// A run or a file.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is called where there are several.
    pub name: String,
    /// `fathom.report/1` or `fathom.explain/1`.
    pub report: Value,
    /// What was recorded; `None` if nothing was.
    pub story: Option<Story>,
}

/// The page. It names its script and its style by their digests, and allows nothing else.
pub fn render(bundle: &Bundle) -> String {
    let script = script();
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        sha256_base64(script.as_bytes()),
        sha256_base64(STYLE.as_bytes())
    );
    let mut page = head(&policy, &bundle.title, STYLE);
    page.push_str(BODY);
    page.push_str(&format!(
        "<script type=\"application/json\" id=\"fathom-page\">{}</script>\n",
        harmless(&contents(bundle))
    ));
    for (number, item) in bundle.items.iter().enumerate() {
        if let Some(story) = &item.story {
            page.push_str(&format!(
                "<script type=\"application/octet-stream\" id=\"fathom-story-{number}\">{}</script>\n",
                story.packed
            ));
        }
    }
    page.push_str(&format!("<script>{script}</script>\n</body>\n</html>\n"));
    page
}

/// All in front of a body.
pub(crate) fn head(policy: &str, title: &str, style: &str) -> String {
    let mut page = String::new();
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"));
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str("<meta name=\"referrer\" content=\"no-referrer\">\n");
    page.push_str(&format!("<title>{}</title>\n", escape(title)));
    page.push_str(&format!("<style>{style}</style>\n</head>\n<body>\n"));
    page
}

fn contents(bundle: &Bundle) -> Value {
    let items = bundle.items.iter().map(|item| {
        json!({ "name": item.name, "report": item.report, "has_story": item.story.is_some() })
    });
    json!({
        "schema": "fathom.page/1",
        "version": env!("CARGO_PKG_VERSION"),
        "title": bundle.title,
        "items": items.collect::<Vec<Value>>(),
        "documents": bundle.documents,
        "cards": cards(bundle),
        "assumed_context_bytes": gpus::unlimited().context_bytes,
    })
}

/// The cards of a menu: none where nothing was recorded.
fn cards(bundle: &Bundle) -> Vec<Value> {
    let is_wanted = bundle.items.iter().any(|item| item.story.is_some());
    let cards = gpus::cards().iter().filter(|_| is_wanted);
    let row = |card: &gpus::Card| {
        json!({
            "name": card.name,
            "title": card.title,
            "memory_bytes": card.memory_bytes,
            "context_bytes": card.context_bytes,
        })
    };
    cards.map(row).collect()
}

/// The script of a page.
pub(crate) fn script() -> String {
    as_one(SCRIPTS)
}

/// Scripts as one: what they import from each other is already there.
pub(crate) fn as_one(scripts: &[&str]) -> String {
    let body: String = scripts.iter().map(|script| without_types(script)).collect();
    format!("\"use strict\";\n(() => {{\n{body}main();\n}})();\n")
}

/// A script for a browser: without imports, exports and types.
pub(crate) fn without_types(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.starts_with("import ") && !is_type(line));
    let lines = lines.map(|line| line.strip_prefix("export ").unwrap_or(line));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// A line that only says types, for `make lint`: no reader of a page needs it.
fn is_type(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("/**") || line.starts_with("* ") || line == "*/"
}

/// JSON inside of a script element: no end tag and no comment can begin in it.
fn harmless(value: &Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let evil = "</script><script>alert(1)</script><!--";
        let item = Item { name: evil.to_owned(), report: json!({ "path": evil }), story: None };
        let bundle = Bundle { title: evil.to_owned(), items: vec![item], documents: vec![] };
        let page = render(&bundle);
        assert!(!page.contains("alert(1)</script>"), "{page}");
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        let start = page.find("fathom-page\">").unwrap() + "fathom-page\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let read: Value = serde_json::from_str(&page[start..end]).unwrap();
        assert_eq!(read["items"][0]["report"]["path"], evil);
    }

    #[test]
    fn nothing_is_fetched() {
        let page = render(&Bundle::default());
        for word in ["http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest", "src="] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn the_body_has_what_the_scripts_ask_for() {
        let ids = SCRIPTS.iter().flat_map(|script| script.split("byId(\"").skip(1));
        let ids = ids.map(|rest| &rest[..rest.find('"').unwrap()]);
        // These come with the data.
        let ids: Vec<&str> = ids.filter(|id| !id.starts_with("fathom-")).collect();
        assert!(20 < ids.len(), "{ids:?}");
        for id in ids {
            assert!(BODY.contains(&format!(" id=\"{id}\"")), "body.html has no `{id}`");
        }
    }

    #[test]
    fn scripts_are_put_together_once() {
        let imports = SCRIPTS.iter().flat_map(|script| script.lines());
        for line in imports.filter(|line| line.starts_with("import ")) {
            assert!(line.ends_with(".js\";"), "an import of several lines is not left out: {line}");
        }
        let script = script();
        assert!(!script.lines().any(|line| line.starts_with("import ")));
        assert!(!script.lines().any(|line| line.starts_with("export ")));
        for line in SCRIPTS.iter().flat_map(|script| script.lines()).filter(|line| is_type(line)) {
            assert!(!line.contains("*/") || line.ends_with("*/"), "left out with its type: {line}");
        }
        assert!(!script.contains("@param") && !script.contains("@typedef"));
        let mut names: Vec<&str> = Vec::new();
        for line in script.lines() {
            let rest = ["function ", "const ", "let ", "class ", "async function "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            let name = rest.map(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                &rest[..end.unwrap_or(rest.len())]
            });
            names.extend(name.filter(|name| !name.is_empty()));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(all, names.len(), "a name is used twice");
    }
}
