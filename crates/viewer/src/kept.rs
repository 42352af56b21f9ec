//! The recordings of the last answer: while somebody moves a slider, the page asks what they would do on other cards.

use std::sync::{Mutex, PoisonError};

use answer::{CONF_HINT, Question, WhatIf};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::request;

/// Of an item of a page: `None` if it is a report, the reason if a replay would not be what was recorded.
pub(crate) type Kept = Option<Result<WhatIf, String>>;

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// What is asked, of which item; the bits of the lives that are left out follow.
#[derive(Debug, Deserialize)]
struct Head {
    item: usize,
    #[serde(flatten)]
    question: Question,
}

pub(crate) fn keep(kept: Vec<Kept>) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = kept;
}

/// What can be asked of each item.
pub(crate) fn facts(kept: &[Kept]) -> Vec<Value> {
    let fact = |kept: &Kept| match kept {
        None => Value::Null,
        Some(Ok(what_if)) => what_if.facts(),
        Some(Err(why)) => json!({ "why_not": why }),
    };
    kept.iter().map(fact).collect()
}

/// The answer to a head and bits, as JSON: that of [`WhatIf::ask`], or an `error`.
pub(crate) fn what_if(request: &[u8]) -> String {
    let answer = request::split::<Head>(request)
        .ok_or_else(|| "the viewer does not understand its own request".to_owned())
        .and_then(|(head, removed)| answer(&head, removed));
    let error = |message| json!({ "error": { "message": message, "hint": CONF_HINT } });
    answer.unwrap_or_else(error).to_string()
}

fn answer(head: &Head, removed: &[u8]) -> Result<Value, String> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.get(head.item) {
        Some(Some(Ok(what_if))) => what_if.ask(&head.question, removed),
        Some(Some(Err(why))) => Err(why.clone()),
        _ => Err("there is no recording to replay".to_owned()),
    }
}
