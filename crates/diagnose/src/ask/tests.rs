use anatomy::{Dissection, ModuleBytes, Tensor};
use recording::{Category, Parameters, Phase};

use super::*;
use crate::finding::Finding;

const GIB: u64 = 1 << 30;

fn tensor(category: Category, block: u64, shape: &[u64], module: &str) -> Tensor {
    Tensor {
        bytes: block,
        block,
        category,
        dtype: "float32".to_owned(),
        shape: shape.to_vec(),
        origin: anatomy::Origin { module: module.to_owned(), ..anatomy::Origin::default() },
        ..Tensor::default()
    }
}

/// A model of two blocks whose batch is 8, at a peak of 10 GiB in the backward pass.
fn trained() -> Anatomy {
    let tensors = vec![
        tensor(Category::Activations, 6 * GIB, &[8, 512, 768], "blocks.0"),
        tensor(Category::Optimizer, 2 * GIB, &[768, 768], "blocks.1"),
        tensor(Category::Weights, GIB, &[768, 768], "blocks.1"),
        Tensor { dtype: "int64".to_owned(), ..tensor(Category::Inputs, GIB, &[8, 512], "") },
    ];
    let module = |path: &str, saved| ModuleBytes {
        path: path.to_owned(),
        own: saved,
        total: saved,
        saved,
        ..ModuleBytes::default()
    };
    let when = anatomy::When { phase: Some(Phase::Backward), step: 2 };
    Anatomy {
        allocated_peak: Dissection {
            allocated: 10 * GIB,
            tensors,
            when,
            modules: vec![module("blocks.0", 6 * GIB), module("blocks.1", 0)],
            ..Dissection::default()
        },
        phases: vec![anatomy::PhasePeak { when, ..anatomy::PhasePeak::default() }],
        modules: ["blocks.0", "blocks.1"]
            .map(|path| (path.to_owned(), "Block".to_owned()))
            .to_vec(),
        parameters: Some(Parameters {
            total: 1 << 28,
            trainable: 1 << 28,
            ..Parameters::default()
        }),
        has_names: true,
        ..Anatomy::default()
    }
}

fn asked_of(anatomy: &Anatomy, question: &str, findings: &[Finding]) -> Answer {
    ask(&About { anatomy, findings, command: &[] }, question)
}

fn asked(question: &str, findings: &[Finding]) -> Answer {
    asked_of(&trained(), question, findings)
}

fn found(id: &'static str, bytes: u64) -> Vec<Finding> {
    vec![Finding { id, bytes, counted: true, ..Finding::default() }]
}

#[test]
fn clearing_the_cache_never_lowers_the_allocated_peak() {
    for question in ["empty_cache", "torch.cuda.empty_cache()", "gc.collect", "clear the cache"] {
        assert_eq!(asked(question, &[]).effect, Effect::None, "{question}");
    }
}

/// What was answered wrongly before.
#[test]
fn negation_and_whole_words_count() {
    assert_eq!(asked("don't use amp", &[]).effect, Effect::None);
    assert!(matches!(asked("use amp", &[]).effect, Effect::AtMost(_)));
    let logits = found("loss-logits", 4 * GIB);
    assert_eq!(asked("liger fused cross entropy", &logits).effect, Effect::AtMost(4 * GIB));
    assert_eq!(asked("optimizer.zero_grad(set_to_none=True)", &[]).effect, Effect::None);
    assert_eq!(asked("zero_grad(set_to_none=False)", &[]).effect, Effect::Worse);
    assert_eq!(asked("semantic loss", &[]).effect, Effect::Unknown);
    assert_eq!(asked("the remaining memory is schematic", &[]).effect, Effect::Unknown);
}

#[test]
fn a_number_is_more_or_less_than_what_is() {
    assert_eq!(asked("batch 16", &[]).effect, Effect::Worse);
    assert_eq!(asked("batch size = 4", &[]).effect, Effect::AtMost(7 * GIB));
    assert_eq!(asked("batch_size=8", &[]).effect, Effect::None);
    assert_eq!(asked("a bigger batch", &[]).effect, Effect::Worse);
    assert_eq!(asked("sequence length 1024", &[]).effect, Effect::Worse);
    assert_eq!(asked("would a sequence length of 256 help?", &[]).effect, Effect::AtMost(7 * GIB));
    assert_eq!(asked("4 layers", &[]).effect, Effect::Worse);
    assert_eq!(asked("use fewer layers", &[]).effect, Effect::AtMost(9 * GIB));
}

#[test]
fn a_flag_of_the_command_says_what_is_and_is_turned() {
    let command = ["python", "train.py", "--batch-size", "64"].map(str::to_owned);
    let anatomy = trained();
    let about = About { anatomy: &anatomy, findings: &[], command: &command };
    let answer = ask(&about, "batch 16");
    assert_eq!(answer.effect, Effect::AtMost(7 * GIB));
    let knob = Try::Knob { name: "batch-size".to_owned(), value: "16".to_owned() };
    assert_eq!(answer.tries, [knob]);
}

#[test]
fn modules_are_known_by_their_names() {
    let of = |question: &str| asked(question, &[]);
    assert_eq!(of("checkpoint blocks.0").effect, Effect::AtMost(6 * GIB));
    assert_eq!(of("checkpoint blocks.1").effect, Effect::None);
    assert_eq!(
        of("checkpoint the blocks").effect,
        Effect::AtMost(6 * GIB),
        "a list has no bytes of its own"
    );
    assert_eq!(of("freeze the first 1 blocks").tries, [], "which they are is not said");
    assert_eq!(
        of("freeze everything but blocks.1").effect,
        Effect::AtMost(8 * GIB),
        "the rest is meant"
    );
    assert_eq!(of("checkpoint no.such.module").effect, Effect::Unknown);
    assert_eq!(of("freeze blocks.1").effect, Effect::AtMost(2 * GIB));
    assert_eq!(of("checkpoint blocks.0").tries, [Try::Checkpoint(vec!["blocks.0".to_owned()])]);
}

/// What was answered wrongly before, or with more than there is.
#[test]
fn names_that_bring_other_names_along_are_one_change() {
    let of = |question: &str| asked(question, &[]).effect;
    assert_eq!(of("move the Adam states to host memory"), Effect::AtMost(2 * GIB));
    assert_eq!(of("what about paged AdamW 8bit"), Effect::AtMost(2 * GIB));
    assert_eq!(of("only train LoRA adapters with rank 8"), of("LoRA"));
    assert_eq!(of("QLoRA (nf4)"), of("qlora"));
    let logits = found("loss-logits", 4 * GIB);
    for question in ["the loss in chunks of 1024 tokens", "fuse the cross entropy with the lm head"]
    {
        assert_eq!(asked(question, &logits).effect, Effect::AtMost(4 * GIB), "{question}");
    }
    let Effect::AtMost(both) = of("FSDP with cpu offload") else { panic!("two bounds") };
    assert!(both <= 10 * GIB, "no more than there is: {both}");
}

#[test]
fn what_only_sounds_like_a_change_is_not_taken_for_it() {
    let matrices = found("attention-matrices", GIB);
    let of = |question: &str| asked(question, &matrices).effect;
    assert_eq!(of("tie the embedding and the output layer"), Effect::Unknown, "nothing of layers");
    assert_eq!(of("grouped query attention"), Effect::Unknown, "the matrices stay");
    assert_eq!(of("sliding window attention of 256"), Effect::AtMost(GIB));
    assert_eq!(asked("sliding window attention", &[]).effect, Effect::None);
    assert_eq!(of("use Shampoo optimizer"), Effect::Unknown);
    assert_eq!(of("share weights between layers"), Effect::Unknown);
    assert_eq!(of("accumulate losses in a list"), Effect::Unknown);
    assert_eq!(of("sampled softmax"), Effect::Unknown, "no softmax of attention");
    assert_eq!(of("a batch four times as large"), Effect::Worse);
    assert_eq!(of("what if batch is 0"), Effect::Unknown);
    assert_eq!(of("will it OOM at step 1000"), Effect::Unknown, "too few steps were seen");
    assert_eq!(of("cut the context to half"), Effect::AtMost(7 * GIB));
    assert_eq!(of("how big is the model"), Effect::Fact);
    assert_eq!(asked("will this run on my 4090", &[]).tries, [Try::Card("4090".to_owned())]);
}

#[test]
fn a_model_that_is_split_has_its_number_beside_it() {
    // Activations, weights and the optimizer's state, in halves.
    assert_eq!(asked("tensor parallelism 2", &[]).effect, Effect::AtMost(9 * GIB - 9 * GIB / 2));
    let over_two = asked("split the model over 2 GPUs", &[]).effect;
    assert_eq!(over_two, asked("tensor parallelism 2", &[]).effect);
    let why = asked("pipeline parallel over 4 gpus", &[]).why;
    assert!(!why.contains("a batch of its own"), "{why}");
}

#[test]
fn several_gpus_divide_what_is_sharded() {
    assert_eq!(asked("FSDP on 4 GPUs", &[]).effect, Effect::AtMost(3 * GIB - 3 * GIB / 4));
    assert_eq!(asked("ZeRO-1 with 2 GPUs", &[]).effect, Effect::AtMost(GIB));
    assert_eq!(asked("fsdp on a single gpu", &[]).effect, Effect::None);
    assert_eq!(asked("DDP", &[]).effect, Effect::Worse);
}

#[test]
fn what_is_asked_for_is_told() {
    let findings = vec![Finding {
        title: "activations of blocks".to_owned(),
        ..found("activations", 6 * GIB).remove(0)
    }];
    for question in
        ["where does the memory go?", "why so much?", "which layer is it", "is it fragmentation?"]
    {
        let answer = asked(question, &findings);
        assert_eq!(answer.effect, Effect::Fact, "{question}: {}", answer.why);
    }
    assert!(
        asked("why does it need so much memory", &findings).why.contains("activations of blocks")
    );
    assert_eq!(asked("is it a leak?", &[]).effect, Effect::Unknown, "no steps were compared");
    assert_eq!(asked("will it fit on an RTX 3090?", &[]).tries, [Try::Card("RTX 3090".to_owned())]);
    assert_eq!(asked("will it fit in 24 GB", &[]).tries, [Try::Card("24GB".to_owned())]);
}

#[test]
fn smaller_heads_double_the_matrices_of_naive_attention() {
    let mut anatomy = trained();
    anatomy.allocated_peak.tensors.extend([
        tensor(Category::Activations, GIB, &[8, 12, 512, 512], "attn"),
        tensor(Category::Weights, GIB, &[3 * 768, 768], "attn.qkv"),
        tensor(Category::Weights, GIB, &[768, 768], "attn.proj"),
    ]);
    let evidence =
        vec![crate::Evidence { shape: vec![8, 12, 512, 512], ..crate::Evidence::default() }];
    let matrices = vec![Finding { evidence, ..found("attention-matrices", GIB).remove(0) }];
    let of = |question: &str| asked_of(&anatomy, question, &matrices).effect;
    assert_eq!(of("head_dim 32"), Effect::Worse);
    assert_eq!(of("head_dim=128"), Effect::AtMost(GIB));
    assert_eq!(of("flash attention"), Effect::AtMost(GIB));
    assert_eq!(of("24 heads"), Effect::Worse);
    assert_eq!(of("6 heads"), Effect::AtMost(GIB));
    assert_eq!(asked("head_dim=32", &[]).effect, Effect::None);
    assert_eq!(asked("head_dim 32", &found("attention-matrices", GIB)).effect, Effect::Unknown);
}

/// A language model whose attention is fused: one example's matrix is small, those of all layers and a batch are not.
#[test]
fn matrices_that_a_fused_kernel_does_not_write_count_for_all_layers_and_the_batch() {
    let mut anatomy = trained();
    let call = |layer: u64| {
        format!(
            "module=blocks.{layer} q=1024 k=1024 heads=12 groups=12 dim=64 dtype=bfloat16 mask=no dropout=0.0 grad=yes"
        )
    };
    [0, 1].iter().for_each(|layer| anatomy.facts.add("sdpa", &call(*layer)));
    anatomy.facts.add("sdpa", &call(0).replace("grad=yes", "grad=no"));
    let answer = asked_of(&anatomy, "turn off flash attention", &[]);
    assert_eq!(answer.effect, Effect::Worse, "{}", answer.why);
    assert!(answer.why.contains("384.0 MiB in all for a batch of 8"), "{}", answer.why);
    assert_eq!(asked_of(&anatomy, "flash attention", &[]).effect, Effect::None);
}

#[test]
fn what_is_there_already_or_is_replaced_is_not_what_is_asked_for() {
    let mut anatomy = trained();
    anatomy.facts.add("optimizer", "RMSprop momentum=0.9");
    let of = |question: &str| asked_of(&anatomy, question, &[]).effect;
    assert_eq!(of("foreach=False for RMSprop"), Effect::None);
    assert_eq!(of("replace RMSprop with Adam"), of("Adam"));
    assert_eq!(of("swap RMSprop for SGD"), Effect::AtMost(2 * GIB));
    assert_eq!(of("is it the attention layers?"), Effect::Fact);
    assert_eq!(of("checkpoint the attention layers"), of("checkpoint"));
    assert_eq!(of("what about the last layer"), Effect::Unknown);
    assert_eq!(of("convert the weights to fp16"), of("pure fp16"));
}

#[test]
fn an_evaluation_is_another_moment() {
    let of = |question: &str| asked(question, &[]).effect;
    assert_eq!(of("does a smaller eval batch help"), Effect::None);
    assert_eq!(of("per_device_eval_batch_size=1"), Effect::Unknown);
    assert_eq!(of("a larger validation batch"), Effect::Unknown);
}

#[test]
fn what_is_of_the_optimizer_is_not_of_the_weights() {
    let of = |question: &str| asked(question, &[]).effect;
    assert_eq!(of("quantize the optimizer state to 8 bits"), Effect::AtMost(2 * GIB / 4 * 3));
    assert_eq!(of("quantize the model to 8 bits"), Effect::AtMost(GIB / 4 * 3));
    assert_eq!(
        of("run the optimizer step in the backward pass"),
        Effect::None,
        "no gradients there"
    );
    assert_eq!(of("LOMO"), Effect::AtMost(2 * GIB), "it has no state");
}

/// An answer goes as far as the remedy or the lever of that name.
#[test]
fn labels_are_those_of_the_table() {
    let label = |question: &str| asked(question, &[]).label.unwrap();
    assert_eq!(label("checkpoint"), Label::Exact);
    assert_eq!(label("foreach=False"), Label::Exact);
    assert_eq!(label("zero_grad"), Label::Exact);
    assert_eq!(label("fused=True"), Label::NumericallyEqual);
    assert_eq!(label("8bit adam"), Label::ChangesTraining);
    assert_eq!(label("batch 8"), Label::ChangesStatistics);
    assert_eq!(label("resolution 224"), Label::ChangesFunction);
}

#[test]
fn what_is_not_known_is_said() {
    let answer = asked("pray", &[]);
    assert_eq!((answer.effect, answer.label), (Effect::Unknown, None));
    assert!(answer.why.contains("`fathom run`"));
}

#[test]
fn a_trial_decides() {
    let mut answer = asked("checkpoint blocks.0", &[]);
    let peaks = |allocated| Peaks { allocated, reserved: allocated + GIB };
    answer.measured(Change { before: peaks(10 * GIB), after: peaks(7 * GIB) });
    assert_eq!((answer.effect.name(), answer.effect.known()), ("lowers", "measured"));
    assert!(
        answer
            .why
            .starts_with("tried: allocated 10.00 GiB → 7.00 GiB, reserved 11.00 GiB → 8.00 GiB; ")
    );
    answer.measured(Change { before: peaks(10 * GIB), after: peaks(10 * GIB + 1) });
    assert_eq!(answer.effect.name(), "none");
}
