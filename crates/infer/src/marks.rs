//! What was found, as marks among the events of a recording.

use std::collections::HashMap;

use recording::{Event, Mark, Owner, OwnerId, Recording, TextId};

use crate::labels::Label;
use crate::lives::Life;
use crate::phases::Now;

/// Writes phases, categories and what they are known by.
pub(crate) fn write(
    recording: &mut Recording,
    lives: &[Life],
    labels: &[Option<Label>],
    modules: &[TextId],
    now: &[Now],
) {
    let mut owners = Owners::default();
    let events = std::mem::take(&mut recording.events);
    let mut written = Vec::with_capacity(events.len().saturating_mul(2));
    let mut phase = (None, 0);
    let mut turn = |at: usize, written: &mut Vec<Event>| {
        let Now { phase: next, step, .. } = now.get(at).copied().unwrap_or_default();
        if let Some(next) = next.filter(|_| phase != (Some(next).flatten(), step)) {
            phase = (Some(next), step);
            written.push(Event::Mark(Mark::Phase { phase: next, step }));
        }
    };
    // What is older has its name from the beginning.
    let mut named = lives.iter().zip(labels).zip(modules).peekable();
    turn(0, &mut written);
    while let Some(((life, label), module)) = named.next_if(|((life, _), _)| life.born.is_none()) {
        name(&mut written, recording, life, *label);
        owners.own(&mut written, recording, life, *module);
    }
    for (at, event) in events.into_iter().enumerate() {
        // A free and its completion stay next to each other, as do segments and the request they are for.
        if !matches!(written.last(), Some(Event::FreeRequested { .. })) {
            turn(at, &mut written);
        }
        written.push(owners.renamed(event));
        while let Some(((life, label), module)) =
            named.next_if(|((life, _), _)| life.born == Some(at))
        {
            name(&mut written, recording, life, *label);
            owners.own(&mut written, recording, life, *module);
        }
    }
    recording.events = written;
}

/// Owners with a module that their stack does not name.
#[derive(Default)]
struct Owners {
    made: HashMap<(OwnerId, TextId), OwnerId>,
    /// Of what is older than the events, by address.
    older: HashMap<u64, OwnerId>,
}

impl Owners {
    fn own(
        &mut self,
        written: &mut Vec<Event>,
        recording: &mut Recording,
        life: &Life,
        module: TextId,
    ) {
        if module == TextId(0) {
            return;
        }
        let row = recording.owners.get(life.owner.0 as usize).copied().unwrap_or_default();
        let owner = *self.made.entry((life.owner, module)).or_insert_with(|| {
            recording.owners.push(Owner { module, ..row });
            OwnerId((recording.owners.len() - 1) as u32)
        });
        let address = life.address;
        written.push(Event::Mark(Mark::Owner { address, owner }));
        if life.born.is_none() {
            self.older.insert(address, owner);
        }
    }

    /// The snapshot's own marks come at the end: they know less.
    fn renamed(&self, event: Event) -> Event {
        match event {
            Event::Mark(Mark::Owner { address, owner }) => {
                let owner = self.older.get(&address).copied().unwrap_or(owner);
                Event::Mark(Mark::Owner { address, owner })
            }
            event => event,
        }
    }
}

fn name(written: &mut Vec<Event>, recording: &mut Recording, life: &Life, label: Option<Label>) {
    let Some(Label { category, name, by }) = label else { return };
    let address = life.address;
    let [name, by] = [name, by.name()].map(|text| recording.texts.intern(text));
    written.push(Event::Mark(Mark::Name { address, category, name }));
    written.push(Event::Mark(Mark::Evidence { address, by }));
    if name != TextId(0) {
        written.push(Event::Mark(Mark::Area { address, area: name }));
    }
}
