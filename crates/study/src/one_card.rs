//! A recording's requests on one card: what `fathom replay --memory` answers, and what a page asks again and again.

use allocator::{OnCard, Requests, Settings, Timeline};

use crate::settings_trials::{Candidate, Trial, describe, start_of};

/// What is free for a recording: a card's memory, `None` for endless, and what its context and others take of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub memory_bytes: Option<u64>,
    pub taken_bytes: u64,
}

impl Room {
    /// Settings on this card.
    pub fn put(self, row: Candidate) -> Candidate {
        let (memory, context) = (self.memory_bytes, self.taken_bytes);
        Candidate { settings: Settings { memory, context, ..row.settings }, ..row }
    }
}

/// Settings as in `PYTORCH_CUDA_ALLOC_CONF`, read by the rules of the recording's torch; `None` if they are the
/// recorded ones by another spelling.
pub fn asked(conf: &str, own: &Settings) -> Result<Option<Candidate>, String> {
    let (major, minor) = own.version;
    let settings = Settings::for_torch(&format!("{major}.{minor}"))
        .and_then(|settings| settings.with_conf(conf))
        .map_err(|error| error.to_string())?;
    let asked = Candidate { conf: conf.to_owned(), settings };
    Ok((!is_same(&asked.settings, own)).then_some(asked))
}

/// Do they lay memory out in the same way? The card is another matter.
fn is_same(one: &Settings, other: &Settings) -> bool {
    let Settings { memory, context, .. } = *other;
    Settings { memory, context, ..one.clone() } == *other
}

/// The verdict on one card, by the rule of the table: under the recorded settings what is older than the trace
/// stays, under others it is asked for anew.
pub fn judge(
    requests: &Requests<'_>,
    own: Candidate,
    asked: Option<Candidate>,
    room: Room,
) -> (Trial, Timeline) {
    let start = start_of(usize::from(asked.is_some()));
    let row = room.put(asked.unwrap_or(own));
    let OnCard { timeline, keeps_start } = requests.replay_on_card(&row.settings, start);
    (Trial { keeps_start, ..describe(requests, &row, &timeline) }, timeline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings_trials::trial;

    const TEXT: &str = "torch 2.6.0\nalloc 0x1 20971520\nalloc 0x2 31457280\nfree_requested 0x1 20971520\n\
                        free_completed 0x1 20971520\nalloc 0x3 25165824\n";

    #[test]
    fn one_card_is_judged_as_its_row_of_the_table() {
        let recording = recording::text::recording(TEXT).unwrap();
        let own = Settings::of(&recording.about).unwrap();
        let own = Candidate { conf: String::new(), settings: own };
        let requests = Requests::of(&recording, &own.settings);
        let other = asked("expandable_segments:True", &own.settings).unwrap();
        let mut verdicts = Vec::new();
        for size in (1..=100).map(|mib| mib << 20) {
            let room = Room { memory_bytes: Some(size), taken_bytes: 1 << 20 };
            let rows = [room.put(own.clone()), room.put(other.clone().unwrap())];
            for (row, asked) in [(0, None), (1, other.clone())] {
                let (judged, _) = judge(&requests, own.clone(), asked, room);
                let expected = trial(&requests, &rows, row);
                assert_eq!(format!("{judged:?}"), format!("{expected:?}"), "{size}");
                verdicts.push(judged.refused.is_none());
            }
        }
        assert!(verdicts.contains(&true) && verdicts.contains(&false));
    }

    #[test]
    fn another_spelling_is_no_other_setting() {
        let own = Settings::for_torch("2.6").unwrap();
        assert!(asked("expandable_segments:False", &own).unwrap().is_none());
        assert!(asked("expandable_segments:True", &own).unwrap().is_some());
        assert!(asked("expandable_segment:True", &own).is_err());
    }
}
