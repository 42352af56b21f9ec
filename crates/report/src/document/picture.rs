//! A picture beside the text: what holds the peak as a bar, and the memory over time.

use ::anatomy::curve;
use study::Run;

use super::Anatomy;
use super::anatomy::title;
use crate::bytes;

/// Columns of the curve: each is the highest of its moments.
const COLUMNS: usize = 240;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 12.0;

/// Height of the curve.
const CURVE: f64 = 200.0;

/// Colours that differ without red and green side by side.
const COLOURS: [&str; 12] = [
    "#3465a4", "#f4a261", "#2a9d8f", "#e9c46a", "#8d6a9f", "#6c757d", "#264653", "#b56576",
    "#90be6d", "#577590", "#adb5bd", "#ced4da",
];

/// Categories over time: for each column the bytes of each name.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    pub names: Vec<&'static str>,
    pub columns: Vec<Vec<u64>>,
}

impl Curve {
    /// `None` if the recording was not kept.
    pub fn of(run: &Run) -> Option<Curve> {
        let source = run.study.as_ref()?.source.as_ref()?;
        let all = curve::curve(&source.recording, &source.timeline);
        let per = all.len().div_ceil(COLUMNS).max(1);
        let highest =
            all.chunks(per).filter_map(|chunk| chunk.iter().max_by_key(|(_, held)| held.sum()));
        let rows: Vec<Vec<(&'static str, u64)>> =
            highest.map(|(_, held)| held.iter().collect()).collect();
        let names: Vec<&'static str> = rows.first()?.iter().map(|(name, _)| *name).collect();
        let used = |at: &usize| rows.iter().any(|row| row[*at].1 != 0);
        let kept: Vec<usize> = (0..names.len()).filter(used).collect();
        Some(Curve {
            names: kept.iter().map(|at| names[*at]).collect(),
            columns: rows.iter().map(|row| kept.iter().map(|at| row[*at].1).collect()).collect(),
        })
    }
}

/// An image that needs nothing else: GitHub shows it as it is.
pub fn svg(anatomy: &Anatomy, curve: Option<&Curve>) -> String {
    let colour = |at: usize| COLOURS[at % COLOURS.len()];
    let legend_rows = anatomy.components.len().div_ceil(2);
    let curve_top = 78.0 + 18.0 * legend_rows as f64 + 24.0;
    let height = curve_top + curve.map_or(0.0, |_| CURVE + 30.0);
    let mut body =
        text(LEFT, 20.0, &format!("At the peak: {} of the GPU", bytes::text(anatomy.device_bytes)));
    let most = anatomy.device_bytes.max(anatomy.card_bytes.unwrap_or(0)).max(1);
    let scale = (WIDTH - 2.0 * LEFT) / most as f64;
    let mut x = LEFT;
    for (at, component) in anatomy.components.iter().enumerate() {
        let width = component.bytes as f64 * scale;
        let name = format!("{}: {}", component.title, bytes::text(component.bytes));
        body += &rect((x, 30.0, width, 30.0), colour(at), &name);
        let (column, row) = (at % 2, at / 2);
        let (left, top) = (LEFT + 420.0 * column as f64, 78.0 + 18.0 * row as f64);
        body += &rect((left, top - 9.0, 10.0, 10.0), colour(at), "");
        body += &text(left + 16.0, top, &name);
        x += width;
    }
    if let Some(card) = anatomy.card_bytes {
        let at = LEFT + card as f64 * scale;
        body += &format!(
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"24\" y2=\"66\" stroke=\"#c1121f\" stroke-width=\"2\"/>\n"
        );
        body += &format!(
            "<text x=\"{:.1}\" y=\"20\" text-anchor=\"end\" fill=\"#c1121f\">GPU: {}</text>\n",
            WIDTH - LEFT,
            bytes::text(card)
        );
    }
    if let Some(curve) = curve {
        body += &over_time(anatomy, curve, curve_top, &colour);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<!-- Written by fathom report. -->\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Areas on top of each other.
fn over_time(
    anatomy: &Anatomy,
    curve: &Curve,
    top: f64,
    colour: &dyn Fn(usize) -> &'static str,
) -> String {
    let sums = curve.columns.iter().map(|column| column.iter().sum::<u64>());
    let most = sums.max().unwrap_or(0).max(1) as f64;
    let step = (WIDTH - 2.0 * LEFT) / curve.columns.len().max(1) as f64;
    let bottom = top + 10.0 + CURVE;
    let mut body = text(
        LEFT,
        top,
        &format!(
            "Allocated over time, up to {}: each column is the peak of its events",
            bytes::text(most as u64)
        ),
    );
    let mut below: Vec<f64> = vec![0.0; curve.columns.len()];
    for (at, name) in curve.names.iter().enumerate() {
        let mut points = Vec::new();
        for (index, low) in below.iter().enumerate() {
            let x = LEFT + step * index as f64;
            points.push((x, bottom - low / most * CURVE));
        }
        points.reverse();
        let mut upper = Vec::new();
        for (index, column) in curve.columns.iter().enumerate() {
            below[index] += column[at] as f64;
            upper.push((LEFT + step * index as f64, bottom - below[index] / most * CURVE));
        }
        let all = upper.iter().chain(&points).map(|(x, y)| format!("{x:.1},{y:.1}"));
        let place = anatomy.components.iter().position(|it| it.name == *name);
        let fill = colour(place.unwrap_or(anatomy.components.len() + at));
        let all: Vec<String> = all.collect();
        body += &format!(
            "<polygon points=\"{}\" fill=\"{fill}\"><title>{}</title></polygon>\n",
            all.join(" "),
            title(name)
        );
    }
    body
}

fn rect((x, y, width, height): (f64, f64, f64, f64), fill: &str, name: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"><title>{name}</title></rect>\n"
    )
}

/// Only our own words come here: nothing to escape but what numbers and titles of ours have.
fn text(x: f64, y: f64, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#222222\">{words}</text>\n")
}
