//! What if the card were smaller, the settings others, some tensors not there: a recording that is replayed again
//! and again while somebody moves a slider.

// What is asked comes from a page.
#![warn(clippy::unwrap_used, clippy::indexing_slicing)]

use allocator::{Requests, Settings, Timeline};
use page::Axis;
use recording::Recording;
use serde::Deserialize;
use serde_json::{Value, json};
use study::Source;
use study::one_card::{Room, asked, judge};
use study::settings_trials::{Candidate, Trial, candidates, context_of};

/// How settings are written.
pub const CONF_HINT: &str =
    "write it as in `PYTORCH_CUDA_ALLOC_CONF`, e.g. `expandable_segments:True`";

/// What is asked, beside the bits of the lives that are left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The card's memory; endless if it is not said.
    pub memory_bytes: Option<u64>,
    /// What the context takes of it, for a card with a name; else it is as recorded.
    pub context_bytes: Option<u64>,
    /// What other programs hold of it.
    pub used_bytes: u64,
    /// As in `PYTORCH_CUDA_ALLOC_CONF`; as recorded if it is not said.
    pub settings: Option<String>,
    /// Ticks of a bucket of the curve.
    pub bucket: u32,
}

/// A recording that replays as it was recorded.
#[derive(Clone, Debug)]
pub struct WhatIf {
    recording: Recording,
    own: Candidate,
    axis: Axis,
}

impl WhatIf {
    /// Of a study's source; in words why not, if a replay of it is not what was recorded.
    pub fn of(source: Source) -> Result<WhatIf, String> {
        let Source { recording, timeline, is_reproduced } = source;
        if recording.trace_length() == 0 {
            return Err("a snapshot without a trace cannot be replayed".to_owned());
        }
        if !is_reproduced {
            return Err("a replay of this file differs from what was recorded".to_owned());
        }
        let settings = Settings::of(&recording.about).map_err(|error| error.to_string())?;
        let (settings, _) = study::sized(&recording, settings, None);
        let own = Candidate { conf: recording.about.allocator_settings.clone(), settings };
        Ok(WhatIf { axis: Axis::of(&recording, &timeline), own, recording })
    }

    /// What a page needs to ask.
    pub fn facts(&self) -> Value {
        let about = &self.recording.about;
        let (context_bytes, is_told) = context_of(about);
        let endless = Candidate {
            settings: Settings { memory: None, ..self.own.settings.clone() },
            ..self.own.clone()
        };
        let others = candidates(&endless, None, true).into_iter().skip(1);
        json!({
            "memory_bytes": (about.memory_bytes != 0).then_some(about.memory_bytes),
            "context_bytes": context_bytes,
            "context_known": if is_told { "recorded" } else { "assumed" },
            "settings": self.own.conf,
            "others": others.map(|row| row.conf).collect::<Vec<String>>(),
        })
    }

    /// The verdict of `fathom replay --memory … --settings …`, and the curves. With lives left out the rest is
    /// replayed as if nobody had asked for them.
    pub fn ask(&self, question: &Question, removed: &[u8]) -> Result<Value, String> {
        let own = &self.own.settings;
        let asked = question.settings.as_deref().map(|conf| asked(conf, own)).transpose()?;
        let (context, _) = context_of(&self.recording.about);
        let taken_bytes =
            question.context_bytes.unwrap_or(context).saturating_add(question.used_bytes);
        let room = Room { memory_bytes: question.memory_bytes, taken_bytes };
        let mut requests = Requests::of(&self.recording, own);
        let is_less = removed.iter().any(|byte| *byte != 0);
        let less = is_less.then(|| self.axis.without(&requests, removed));
        if let Some((events, start)) = &less {
            requests.events = events;
            requests.start.clone_from(start);
        }
        let (trial, timeline) = judge(&requests, self.own.clone(), asked.flatten(), room);
        Ok(self.answer(question, &trial, &timeline, is_less))
    }

    fn answer(
        &self,
        question: &Question,
        trial: &Trial,
        timeline: &Timeline,
        is_less: bool,
    ) -> Value {
        let events = &self.recording.events;
        let refused = trial.refused.map(|refused| {
            let at = timeline.unmet(events).unwrap_or_default();
            // What was left out counts as well: numbers are those of the recording.
            let before = events.iter().take(at).filter(|event| event.is_of_allocator());
            json!({
                "event": before.count(),
                "tick": self.axis.tick_of(at),
                "tried_bytes": refused.tried_bytes,
            })
        });
        let (ticks, bytes) = self.axis.reserved(timeline);
        json!({
            "verdict": if trial.refused.is_none() { "fits" } else { "does_not_fit" },
            "known": if is_less { "arithmetic" } else { "replayed" },
            "start": if trial.keeps_start { "recorded" } else { "modelled" },
            "refused": refused,
            "rescued": timeline.rescued.len(),
            "peak_allocated_bytes": trial.peak_allocated_bytes,
            "peak_reserved_bytes": trial.peak_reserved_bytes,
            "fragmentation_bytes": trial.fragmentation_bytes,
            "reserved": { "ticks": ticks, "bytes": bytes },
            "allocated": self.axis.allocated(timeline, question.bucket),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use study::{Context, Wants};

    use super::*;

    const TEXT: &str = "torch 2.6.0\nsegment_alloc 0x1000000 20971520\nalloc 0x1000000 20971520\n\
                        segment_alloc 0x4000000 31457280\nalloc 0x4000000 31457280\n";

    fn what_if(text: &str) -> Result<WhatIf, String> {
        let mut recording = recording::text::recording(text).unwrap();
        recording.about.complete = true;
        let wants = Wants { source: true, ..Wants::default() };
        let context = Context { wants, ..Context::default() };
        WhatIf::of(study::study(recording, &context).unwrap().source.unwrap())
    }

    #[test]
    fn a_card_is_judged_with_and_without_a_tensor() {
        let it = what_if(TEXT).unwrap();
        let on = |mib: u64, removed: &[u8]| {
            let question = Question {
                memory_bytes: Some(mib << 20),
                context_bytes: Some(0),
                ..Question::default()
            };
            it.ask(&question, removed).unwrap()
        };
        assert_eq!(on(50, &[])["verdict"], "fits");
        let refused = on(49, &[]);
        assert_eq!(
            (&refused["verdict"], &refused["known"]),
            (&"does_not_fit".into(), &"replayed".into())
        );
        assert_eq!(refused["refused"], json!({ "event": 3, "tick": 2, "tried_bytes": 30 << 20 }));
        let less = on(49, &[0b01]);
        assert_eq!((&less["verdict"], &less["known"]), (&"fits".into(), &"arithmetic".into()));
        assert_eq!(less["peak_reserved_bytes"], 30 << 20);
    }

    #[test]
    fn settings_that_torch_does_not_know_are_refused() {
        let question = Question { settings: Some("what:1".to_owned()), ..Question::default() };
        assert!(what_if(TEXT).unwrap().ask(&question, &[]).unwrap_err().contains("what"));
    }
}
