//! Three sentences: fits or not, the one cause, the one change.

use serde::Serialize;
use study::Run;

use super::places::arithmetic;
use super::sentence;
use crate::bytes;
use crate::markup::{code, plain};
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
    /// `in backward, step 2`
    pub when: String,
    /// Whether the cause is of the moment at which memory ran out, since one request was too large; else of the peak.
    pub is_of_request: bool,
    pub refused: Option<Refused>,
    pub gain: Option<Gain>,
    /// Remedies were tried, and none is worth being the change.
    pub has_no_change: bool,
}

const NO_CHANGE: &str = "**No change** that was tried lowers what is reserved by 5 % or more and leaves the training as it is; all of \
                         them are below.\n";

/// The request that ended the run.
#[derive(Clone, Debug, Serialize)]
pub struct Refused {
    pub bytes: u64,
    pub free_bytes: Option<u64>,
    /// `forward, step 1`
    pub when: String,
    pub file: String,
    pub line: u64,
    pub source: String,
    /// The tensor that it is, seen in the run without a limit: its type, shape and arithmetic; empty if none is alike.
    pub tensor: String,
    pub arithmetic: String,
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
        let at = Moment::told(run, whole);
        let cause = at.as_ref().and_then(|at| at.findings.iter().find(|finding| finding.counted));
        Answer {
            judgement: run.judgement().name(),
            word,
            sentence: said,
            cause: cause.map(|finding| finding.title.clone()),
            cause_bytes: cause.map_or(0, |finding| finding.bytes),
            of_bytes: at.as_ref().map_or(0, |at| at.bytes),
            when: at.map(|at| at.when).unwrap_or_default(),
            is_of_request: is_of_request(run),
            refused: Refused::of(run, whole),
            gain: None,
            has_no_change: false,
        }
    }

    pub(super) fn markdown(&self) -> String {
        let mut text =
            format!("## Answer\n\n**{}**: {}\n\n", self.word, sentence(&plain(&self.sentence)));
        if let Some(cause) = &self.cause {
            let Answer { cause_bytes, of_bytes, when, .. } = self;
            text += &format!(
                "**The cause** is {}: {}, {} of the {} that are {}{}{when}.\n\n",
                plain(cause),
                bytes::text(*cause_bytes),
                share(*cause_bytes, *of_bytes),
                bytes::text(*of_bytes),
                match self.is_of_request {
                    true => "allocated or asked for when memory runs out",
                    false => "allocated at the peak",
                },
                if when.is_empty() { "" } else { ", " },
            );
        }
        if let Some(refused) = &self.refused {
            text += &refused.markdown();
        }
        match (&self.gain, self.has_no_change) {
            (Some(gain), _) => text + &gain.markdown(),
            (None, true) => text + NO_CHANGE,
            (None, false) => text,
        }
    }
}

/// What a run's causes are of.
pub(super) struct Moment<'a> {
    pub(super) findings: &'a [diagnose::Finding],
    /// What was allocated then; with the request that failed, if one ended the run.
    pub(super) bytes: u64,
    pub(super) reserved: u64,
    pub(super) when: String,
}

impl<'a> Moment<'a> {
    /// The moment that explains the answer: one request that no such GPU could meet explains itself; else it is the peak
    /// of the run that went through. `None` if nothing was recorded.
    pub(super) fn told(run: &'a Run, whole: &'a Run) -> Option<Moment<'a>> {
        let is_one = is_of_request(run).then(|| Moment::of(run)).flatten();
        is_one.or_else(|| Moment::of(whole)).or_else(|| Moment::of(run))
    }

    fn of(run: &'a Run) -> Option<Moment<'a>> {
        let anatomy = run.anatomy()?;
        let ended = anatomy.out_of_memory.as_ref().filter(|_| run.out_of_memory.is_some());
        let (at, more) = match ended {
            Some(refused) => (&refused.at, refused.tried_bytes),
            None => (&anatomy.allocated_peak, 0),
        };
        Some(Moment {
            findings: run.findings(),
            bytes: at.allocated + more,
            reserved: at.reserved,
            when: moment(&at.when),
        })
    }
}

/// Whether one request takes half of the GPU or more.
pub(super) fn is_of_request(run: &Run) -> bool {
    let tried = run.out_of_memory.as_ref().map_or(0, |refused| refused.tried_bytes);
    let has = run.card.as_ref().map_or(u64::MAX, |card| card.memory_bytes);
    has / 2 <= tried
}

/// The causes that a document is about, the largest first.
pub fn causes<'a>(run: &'a Run, whole: &'a Run) -> &'a [diagnose::Finding] {
    Moment::told(run, whole).map_or(&[], |at| at.findings)
}

impl Refused {
    fn of(run: &Run, whole: &Run) -> Option<Refused> {
        let refused = run.out_of_memory.as_ref()?;
        let (file, line) = (refused.file.clone().unwrap_or_default(), refused.line.unwrap_or(0));
        let is_here = |origin: &::anatomy::Origin| {
            origin.file == file && u64::from(origin.line) == line && !file.is_empty()
        };
        let alive = whole.anatomy().into_iter().flat_map(|it| &it.allocated_peak.alike);
        let mut alike = alive.map(|row| &row.first).filter(|it| is_here(&it.origin));
        let alike = alike.find(|it| it.bytes == refused.tried_bytes && !it.dtype.is_empty());
        let lines = whole.anatomy().into_iter().flat_map(|it| &it.allocated_peak.lines);
        let source = lines
            .filter(|it| it.file == file && u64::from(it.line) == line)
            .map(|it| it.source.clone())
            .next();
        let sizes = |shape: &[u64]| shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        Some(Refused {
            bytes: refused.tried_bytes,
            free_bytes: refused.free_bytes,
            when: format!("{}, step {}", refused.phase.replace('_', " "), refused.step),
            file: file.clone(),
            line,
            source: source.unwrap_or_default(),
            tensor: alike
                .map_or_else(String::new, |it| format!("{}[{}]", it.dtype, sizes(&it.shape))),
            arithmetic: alike
                .map_or_else(String::new, |it| arithmetic(&it.dtype, &it.shape, it.bytes)),
        })
    }

    fn markdown(&self) -> String {
        let size = bytes::text(self.bytes);
        let mut text = format!("**What ended the run** is a request for {size} in {}", self.when);
        if !self.file.is_empty() {
            text += &format!(" at {}", code(&format!("{}:{}", self.file, self.line)));
        }
        if let Some(free) = self.free_bytes {
            text += &format!("; the GPU had {} left", bytes::text(free));
        }
        text += ".";
        if !self.source.is_empty() {
            text += &format!(" The line: {}.", code(&self.source));
        }
        if !self.arithmetic.is_empty() {
            text +=
                &format!(" The tensor is {}: {} = {size}.", code(&self.tensor), self.arithmetic);
        }
        text + "\n\n"
    }
}

impl Gain {
    fn markdown(&self) -> String {
        let (which, fits) = match self.fits {
            Some(true) => ("with which it fits", ""),
            Some(false) => ("to make first", ", which is not enough by itself"),
            None => ("to make first", ""),
        };
        format!(
            "**The change** {which}: {} ({}). The run then takes {} instead of {}{fits} (measured).\n",
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
