//! Every remedy that was tried, with what came of it.

use serde::Serialize;

use crate::bytes;
use crate::markup::{code, plain, table};
use crate::sections::columns::share;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Tried {
    /// The script as it is, without a limit.
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    pub context_bytes: u64,
    /// The lowest first.
    pub remedies: Vec<Remedy>,
    /// That found nothing to act on, and why.
    pub not_applicable: Vec<(String, String)>,
    /// What people try besides, and why it does not help; not run.
    pub asked: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Remedy {
    pub name: String,
    pub what: String,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    /// Time of a step beside the script as it is: modelled; `None` for a setting of the script's own.
    pub time: Option<f64>,
    /// How far it changes results.
    pub results: String,
    /// Whether it fits the GPU; `None` without one.
    pub fits: Option<bool>,
}

/// Less than this part of the peak is no change.
const STILL: u64 = 200;

impl Tried {
    pub(super) fn markdown(&self) -> Option<String> {
        if self.remedies.is_empty() && self.not_applicable.is_empty() {
            return None;
        }
        let mut text = format!(
            "## What was tried\n\nEach was applied alone to the script and run without a limit of memory. As it is: {} allocated, \
             {} reserved. \"Change\" is that of what is reserved; \"time\" is that of a step beside the script as it is \
             (modelled).\n\n",
            bytes::text(self.allocated_bytes),
            bytes::text(self.reserved_bytes)
        );
        let has_card = self.remedies.iter().any(|remedy| remedy.fits.is_some());
        let mut head =
            vec!["remedy", "what", "allocated:", "reserved:", "change:", "time:", "results"];
        head.extend(has_card.then_some("fits"));
        let rows: Vec<Vec<String>> =
            self.remedies.iter().map(|it| self.row(it, has_card)).collect();
        text += &table(&head, &rows);
        if !self.not_applicable.is_empty() {
            text += "Nothing to act on here:\n\n";
            for (name, why) in &self.not_applicable {
                text += &format!("- {}: {}\n", plain(name), plain(why));
            }
            text.push('\n');
        }
        if !self.asked.is_empty() {
            text += "Not run, since it follows from the peak itself:\n\n";
            for (name, why) in &self.asked {
                text += &format!("- {}: {}\n", plain(name), plain(why));
            }
        }
        Some(text)
    }

    fn row(&self, remedy: &Remedy, has_card: bool) -> Vec<String> {
        let (before, after) = (self.reserved_bytes, remedy.reserved_bytes);
        let change = match before.abs_diff(after) {
            small if small < before / STILL => "none".to_owned(),
            less if after < before => format!("−{}", share(less, before)),
            more => format!("+{}", share(more, before)),
        };
        let sizes = [remedy.allocated_bytes, remedy.reserved_bytes].map(bytes::text);
        let what = if remedy.time.is_some() { code(&remedy.what) } else { plain(&remedy.what) };
        let mut row = vec![plain(&remedy.name), what];
        row.extend(sizes);
        row.push(change);
        row.push(remedy.time.map_or(String::new(), |time| format!("× {time:.2}")));
        row.push(remedy.results.clone());
        if has_card {
            row.push(remedy.fits.map_or("", |fits| if fits { "yes" } else { "no" }).to_owned());
        }
        row
    }
}
