//! The viewer: one file with the analysis inside, which turns other files into pages.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::digest::{base64, sha256_base64};
use crate::html;

/// Put together as those of a page are.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/format.js"),
    include_str!("../assets/dom.js"),
    include_str!("../assets/unpack.js"),
    include_str!("../assets/viewer/viewer.js"),
];
const WORKER: &str = include_str!("../assets/viewer/worker.js");
const STYLE: &str = include_str!("../assets/viewer/viewer.css");
const BODY: &str = include_str!("../assets/viewer/body.html");

/// The viewer around an analysis, which `crates/viewer` compiles to.
///
/// Its policy allows no connection at all. A page that it shows in a frame inherits the policy, so this one
/// names the page's script and style as well.
pub fn viewer(wasm: &[u8]) -> String {
    let script = html::as_one(SCRIPTS);
    let style = format!("{}{STYLE}", html::STYLE);
    let digests = |texts: [&str; 2]| {
        texts.map(|text| format!("'sha256-{}'", sha256_base64(text.as_bytes()))).join(" ")
    };
    let policy = format!(
        "default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src {}; worker-src blob:; frame-src 'self'; \
         base-uri 'none'; form-action 'none'",
        digests([&script, &html::script()]),
        digests([&style, html::STYLE]),
    );
    let data = |id: &str, kind: &str, text: &str| {
        format!("<script type=\"{kind}\" id=\"{id}\">{text}</script>\n")
    };
    let mut page = html::head(&policy, "Fathom viewer", &style);
    page += BODY;
    page += &data("fathom-worker", "text/plain", &html::without_types(WORKER));
    page += &data("fathom-wasm", "application/octet-stream", &base64(&deflated(wasm)));
    page += &format!("<script>{script}</script>\n</body>\n</html>\n");
    page
}

/// Whether an analysis makes the pages that this program allows: one of another build may hold another script or
/// style, which the policy would refuse.
pub fn is_of_this_build(wasm: &[u8]) -> bool {
    let holds = |text: &str| {
        let text = text.as_bytes();
        wasm.windows(text.len()).any(|window| window == text)
    };
    html::SCRIPTS.iter().all(|script| holds(script)) && holds(html::STYLE)
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    // Memory takes whatever is written.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_no_connection() {
        let page = viewer(b"\0asm");
        for word in
            ["http://", "https://", "fetch(", "XMLHttpRequest", "connect-src", "unsafe-inline"]
        {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'") && !page.contains("'unsafe-eval'"));
        let shown = html::render(&html::Bundle::default());
        for directive in ["script-src", "style-src"] {
            let digest = shown.split(&format!("{directive} ")).nth(1).unwrap();
            let digest = digest.split(';').next().unwrap();
            let own = page.split(directive).nth(1).unwrap().split(';').next().unwrap();
            assert!(own.contains(digest), "{directive}: the viewer does not allow its own pages");
        }
    }

    #[test]
    fn an_analysis_of_another_build_is_known() {
        let own = [html::SCRIPTS.concat(), html::STYLE.to_owned()].concat();
        assert!(is_of_this_build(own.as_bytes()));
        assert!(!is_of_this_build(own.replace("--paper:", "--other:").as_bytes()));
    }

    #[test]
    fn the_body_has_what_the_script_asks_for() {
        let ids = SCRIPTS[3].split("byId(\"").skip(1).map(|rest| &rest[..rest.find('"').unwrap()]);
        let ids: Vec<&str> = ids.filter(|id| !id.starts_with("fathom-")).collect();
        assert!(10 < ids.len());
        for id in ids {
            assert!(BODY.contains(&format!(" id=\"{id}\"")), "body.html has no `{id}`");
        }
    }
}
