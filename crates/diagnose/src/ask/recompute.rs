//! What autograd keeps: computing it again, moving it away, keeping less of it.

use anatomy::bytes;
use recording::Category;

use super::{Effect, Question, Reply, Try};
use crate::label::Label;
use crate::remedies::row;

pub(super) fn checkpoint(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("checkpoint") });
    let again = question.anatomy().facts.of("recomputed");
    if question.is_without() {
        return match again.first() {
            Some(first) => {
                let why = format!(
                    "{} modules run again in the backward pass, `{first}` among them: what they keep now is little, and \
                     would stay for the backward pass",
                    again.len()
                );
                Reply::worse(label, why)
            }
            None => Reply::none(
                label,
                "nothing is checkpointed now: no module ran again in a backward pass",
            ),
        };
    }
    let modules = match question.modules() {
        Ok(modules) => modules,
        Err(name) => return question.no_module(&name, label),
    };
    let peak = &question.anatomy().allocated_peak;
    let saved = match modules.is_empty() {
        true => question.of(Category::Activations),
        false => {
            let of = peak.modules.iter().filter(|module| modules.contains(&module.path));
            crate::scene::sum(of.map(|module| module.saved))
        }
    };
    let what = match modules.as_slice() {
        [] => "the model".to_owned(),
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}"),
    };
    if !question.is_worth(saved) {
        let why = format!("{}: there {what} keeps {}", question.moment(), bytes::text(saved));
        return Reply::new(Effect::None, Some(label), why);
    }
    let so_far = match again.len() {
        0 => String::new(),
        count => format!("; {count} modules run again in the backward pass already"),
    };
    let why = format!(
        "{what} keeps {} at the peak; computing it again brings back what one checkpointed block keeps, all of it if it \
         is one block{so_far}",
        bytes::text(saved)
    );
    let reply = question.at_most(saved, label, why);
    match question.is_partial() {
        true => reply,
        false => reply.tried_by(Try::Checkpoint(modules)),
    }
}

pub(super) fn offload(question: &Question<'_>) -> Reply {
    let label = question.label(const { row("offload") });
    let kept = question.of(Category::Activations);
    let why = format!("what autograd keeps can wait on the host: {}", question.share(kept));
    let reply = question.at_most(kept, label, why);
    if reply.effect == Effect::None { reply } else { reply.tried_by(Try::Lever("offload")) }
}

/// `cpu offload`, of whatever.
pub(super) fn any_offload(question: &Question<'_>) -> Reply {
    let kinds = [
        ("weights", Category::Weights),
        ("gradients", Category::Gradients),
        ("optimizer state", Category::Optimizer),
        ("activations", Category::Activations),
        ("KV cache", Category::KvCache),
    ];
    let held = kinds.map(|(name, kind)| (name, question.of(kind)));
    let parts: Vec<String> = held
        .iter()
        .filter(|row| row.1 != 0)
        .map(|(name, held)| format!("{name} {}", bytes::text(*held)))
        .collect();
    let why = format!("what can wait on the host at the peak: {}", parts.join(", "));
    question.at_most(crate::scene::sum(held.iter().map(|row| row.1)), Label::Exact, why)
}

pub(super) fn compile(question: &Question<'_>) -> Reply {
    let made = crate::scene::sum(
        [Category::Activations, Category::Temporaries, Category::Casts]
            .into_iter()
            .map(|kind| question.of(kind)),
    );
    let why = format!(
        "it fuses functions and chooses anew what the backward pass keeps: that is {} at the peak. The model's state, \
         {}, stays. How much it is, and whether CUDA graphs add to it, `fathom run` measures with torch.compile in the script",
        question.share(made),
        bytes::text(question.of(Category::Weights).saturating_add(question.of_training()))
    );
    question.at_most(made, Label::NumericallyEqual, why)
}

pub(super) fn dropout(question: &Question<'_>) -> Reply {
    let masks = question.bytes(|tensor| {
        let is_mask = |name: &str| name.contains("Dropout") || name.contains("dropout");
        is_mask(&tensor.name)
            || tensor.also.iter().any(|(_, name)| is_mask(name))
            || is_mask(&tensor.origin.operator)
    });
    let adds = ["add", "adding", "more", "use", "increase"].iter().any(|it| question.words.has(it));
    if !question.is_without() && (masks == 0 || adds) {
        let why = format!(
            "dropout that is added keeps a mask of one byte a number wherever it stands; now it takes {}. How much that adds, \
             `fathom run` measures",
            bytes::text(masks)
        );
        return Reply::unknown(why);
    }
    let why = format!(
        "what dropout makes and keeps takes {} at the peak; how likely it drops changes nothing",
        bytes::text(masks)
    );
    question.at_most(masks, Label::ChangesTraining, why)
}

pub(super) fn inplace(question: &Question<'_>) -> Reply {
    let data =
        question.of(Category::Activations).saturating_add(question.of(Category::Temporaries));
    let why = format!(
        "a function in place saves its result beside its input, where no backward pass needs the input: activations and \
         temporaries are {}; how much of it, `fathom run` with the change made measures",
        question.share(data)
    );
    question.at_most(data, Label::Exact, why)
}
