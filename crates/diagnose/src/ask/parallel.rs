//! Several GPUs: what is divided between them, and what each still holds.

use anatomy::bytes;
use recording::Category;

use super::{Effect, Question, Reply};
use crate::label::Label;
use crate::scene::sum;

const LABEL: Label = Label::NumericallyEqual;

/// How to see one rank of several.
const HOW: &str = "`fathom run --world-size N` runs one rank of N with the change made";

pub(super) fn fsdp(question: &Question<'_>) -> Reply {
    sharded(
        question,
        &[Category::Weights, Category::Gradients, Category::Optimizer, Category::Casts],
        "weights, gradients and optimizer state",
    )
}

pub(super) fn zero_two(question: &Question<'_>) -> Reply {
    sharded(question, &[Category::Gradients, Category::Optimizer], "gradients and optimizer state")
}

pub(super) fn zero_one(question: &Question<'_>) -> Reply {
    sharded(question, &[Category::Optimizer], "optimizer state")
}

pub(super) fn split_model(question: &Question<'_>) -> Reply {
    let kinds = [
        Category::Weights,
        Category::Gradients,
        Category::Optimizer,
        Category::Activations,
        Category::Temporaries,
        Category::KvCache,
        Category::Casts,
    ];
    let share = "what is not split stays whole on each GPU";
    divided(question, &kinds, ("the model's state and its activations", share))
}

fn sharded(question: &Question<'_>, kinds: &[Category], what: &str) -> Reply {
    divided(question, kinds, (what, "activations stay, as each GPU has a batch of its own"))
}

/// `what` names these kinds; `whose` what stays on each GPU.
fn divided(question: &Question<'_>, kinds: &[Category], (what, whose): (&str, &str)) -> Reply {
    let held = sum(kinds.iter().map(|kind| question.of(*kind)));
    if let Some(area) =
        question.anatomy().allocated_peak.areas.iter().find(|area| is_sharded(&area.name))
    {
        let why = format!(
            "`{}` is there already; how it goes with more ranks, `fathom sweep --vary world-size=…` tells",
            area.name
        );
        return Reply::new(Effect::Unknown, Some(LABEL), why);
    }
    let ranks = ranks(question);
    match ranks {
        Some(1) => {
            let why = format!(
                "on one GPU there is nobody to divide with: {what} stay {}",
                bytes::text(held)
            );
            Reply::none(LABEL, why)
        }
        Some(ranks) => {
            let most = held - held / ranks;
            let why = format!(
                "{what} take {}, and each of {ranks} GPUs keeps 1/{ranks} of it; {whose}. {HOW}",
                question.share(held)
            );
            question.at_most(most, LABEL, why)
        }
        None => {
            let why = format!(
                "over several GPUs: {what} take {}, of which each of N keeps an Nth; {whose}. On one GPU it lowers nothing. {HOW}",
                question.share(held)
            );
            question.at_most(held, LABEL, why)
        }
    }
}

fn is_sharded(area: &str) -> bool {
    ["FSDP", "ZeRO", "shard"].iter().any(|word| area.contains(word))
}

/// How many GPUs the question has, if it says: the stage of ZeRO is none.
fn ranks(question: &Question<'_>) -> Option<u64> {
    let one =
        ["one gpu", "single gpu", "a single gpu", "1 gpu"].iter().any(|it| question.words.has(it));
    let counted =
        question.words.count_of(&["gpu", "rank", "card", "device", "a100", "h100", "node"]);
    // `tensor parallelism 2` has its number beside it; the number of ZeRO is its stage.
    let beside = || {
        let is_split = question.words.has("parallel*");
        question.words.numbers(&question.span).0.filter(|_| is_split)
    };
    let counted = counted.or_else(beside).filter(|count| (1..=65_536).contains(count));
    if one { Some(1) } else { counted }
}

/// `nn.DataParallel` divides the batch that the script has.
pub(super) fn data_parallel(question: &Question<'_>) -> Reply {
    let data = question.of_data();
    let why = format!(
        "nn.DataParallel divides a batch between the GPUs, and each holds the whole model; the first also has the results of \
         all: what follows the batch is {}. DistributedDataParallel does not divide the script's batch",
        question.share(data)
    );
    question.at_most(data, LABEL, why)
}

pub(super) fn ddp(question: &Question<'_>) -> Reply {
    let gradients = question.all_gradients();
    if let Some(finding) = question.finding("gradient-buckets") {
        if question.is_without() {
            let why = format!("its buckets take {}", bytes::text(finding.bytes));
            return question.at_most(finding.bytes, LABEL, why);
        }
        let why = format!(
            "each GPU holds the whole model; the buckets, {}, go with gradient_as_bucket_view=True. More GPUs lower nothing \
             as long as each has the same batch",
            bytes::text(finding.bytes)
        );
        return Reply::none(LABEL, why);
    }
    if question.is_without() {
        return Reply::none(LABEL, "no buckets of DDP are in the way at the peak");
    }
    let why = format!(
        "with data parallelism each GPU holds the whole model and a batch of its own; DDP adds buckets of the gradients' \
         size ({} in float32) unless gradient_as_bucket_view=True. Only a smaller batch on each GPU, or sharding (FSDP, \
         ZeRO), makes it less. {HOW}",
        bytes::text(gradients)
    );
    match (names_ddp(question), question.is_worth(gradients)) {
        (true, true) => Reply::worse(LABEL, why),
        (true, false) => Reply::none(LABEL, why),
        // More GPUs, in whatever way: a part of the batch for each is the most that they bring without sharding.
        (false, _) => question.at_most(question.of_data(), LABEL, why),
    }
}

fn names_ddp(question: &Question<'_>) -> bool {
    ["ddp", "distributed data parallel*", "distributeddataparallel"]
        .iter()
        .any(|it| question.words.has(it))
}

pub(super) fn bucket_view(question: &Question<'_>) -> Reply {
    match question.finding("gradient-buckets") {
        Some(finding) => {
            let why = format!("the buckets of DDP take {}", question.share(finding.bytes));
            question.at_most(finding.bytes, Label::Exact, why)
        }
        None => Reply::none(Label::Exact, "no buckets of DDP are alive at the peak"),
    }
}
