//! Three sentences: fits or not, the one cause, the one change.

use serde::Serialize;
use study::Run;

use super::sentence;
use crate::bytes;
use crate::markup::plain;
use crate::reader::Reader;
use crate::sections::columns::share;
use crate::verdict::verdict;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// As in `fathom.report/1`.
    pub judgement: &'static str,
    /// `FITS`
    pub word: &'static str,
    /// What `fathom run` says behind it.
    pub sentence: String,
    /// The largest cause of the peak.
    pub cause: Option<String>,
    pub cause_bytes: u64,
    /// Of these.
    pub of_bytes: u64,
    /// `in the backward pass, step 2`
    pub when: String,
    pub gain: Option<Gain>,
}

/// The one change, and what it brings.
#[derive(Clone, Debug, Serialize)]
pub struct Gain {
    pub what: String,
    /// How far it changes results.
    pub results: String,
    /// What the run takes of the GPU without and with it, context included.
    pub before_bytes: u64,
    pub after_bytes: u64,
    /// Whether it fits then; `None` without a GPU to fit, and where it fits without it.
    pub fits: Option<bool>,
}

impl Answer {
    /// `run` has the verdict; `whole` is the run that went through, whose peak is taken apart.
    pub fn of(run: &Run, whole: &Run) -> Answer {
        let (_, word, said) = verdict(run, Reader::plain(0));
        let cause = whole.findings().iter().find(|finding| finding.counted);
        let peak = whole.anatomy().map(|anatomy| &anatomy.allocated_peak);
        Answer {
            judgement: run.judgement().name(),
            word,
            sentence: said,
            cause: cause.map(|finding| finding.title.clone()),
            cause_bytes: cause.map_or(0, |finding| finding.bytes),
            of_bytes: peak.map_or(0, |peak| peak.allocated),
            when: peak.map(|peak| moment(&peak.when)).unwrap_or_default(),
            gain: None,
        }
    }

    pub(super) fn markdown(&self) -> String {
        let mut text =
            format!("## Answer\n\n**{}**: {}\n\n", self.word, sentence(&plain(&self.sentence)));
        if let Some(cause) = &self.cause {
            let Answer { cause_bytes, of_bytes, when, .. } = self;
            text += &format!(
                "**The cause** is {}: {}, {} of the {} that are allocated at the peak{}{when}.\n\n",
                plain(cause),
                bytes::text(*cause_bytes),
                share(*cause_bytes, *of_bytes),
                bytes::text(*of_bytes),
                if when.is_empty() { "" } else { ", " },
            );
        }
        match &self.gain {
            Some(gain) => text + &gain.markdown(),
            None => text,
        }
    }
}

impl Gain {
    fn markdown(&self) -> String {
        let fits = match self.fits {
            Some(true) => ", and fits",
            Some(false) => ", which is not enough by itself",
            None => "",
        };
        format!(
            "**The change** that helps most: {} ({}). The run then takes {} instead of {}{fits} (measured).\n",
            plain(&self.what),
            self.results,
            bytes::text(self.after_bytes),
            bytes::text(self.before_bytes)
        )
    }
}

/// `in the backward pass of step 2`
pub(super) fn moment(when: &::anatomy::When) -> String {
    let phase = when.phase.map(|phase| phase.name().replace('_', " ")).unwrap_or_default();
    match (phase.as_str(), when.step) {
        ("", _) => String::new(),
        (phase, 0) => format!("in {phase}"),
        (phase, step) => format!("in {phase}, step {step}"),
    }
}
