//! The table of changes: levers in the order in which they are tried, then what is done by hand.
//!
//! A new lever is its row here and its file in `python/fathom/_doorway/levers`.

use super::{AsLever, Probe, Row, Stage};
use crate::label::Label;

#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    Row {
        id: "own-setting",
        // What a setting does is seen in its trial; then it has the label of the lever that it is like.
        label: Label::ChangesTraining,
        change: "a flag or a key of the script's own",
        acts_on: "what it says",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Own, "a flag, key or constant of the script's that says that it does what another lever does, beside which it is tried; its label is that lever's") }),
        ..EMPTY
    },
    Row {
        id: "zero-grad",
        label: Label::Exact,
        change: "optimizer.zero_grad(set_to_none=True) right after optimizer.step()",
        acts_on: "gradients",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "gradients are given back right after the step") }),
        ..EMPTY
    },
    Row {
        id: "bucket-view",
        label: Label::Exact,
        change: "DistributedDataParallel(…, gradient_as_bucket_view=True)",
        acts_on: "gradient buckets",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "DistributedDataParallel keeps gradients in its buckets") }),
        ..EMPTY
    },
    Row {
        id: "no-foreach",
        label: Label::Exact,
        change: "foreach=False: one parameter at a time",
        acts_on: "temporaries of the optimizer's step",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "the optimizer goes parameter by parameter") }),
        ..EMPTY
    },
    Row {
        id: "ema-cpu",
        label: Label::Exact,
        change: "keep the averaged copy on the CPU, or update it every few steps",
        acts_on: "extra copy of the model",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "an `AveragedModel` waits on the host") }),
        ..EMPTY
    },
    Row {
        id: "fused-attention",
        label: Label::NumericallyEqual,
        change: "F.scaled_dot_product_attention: keeps no matrix",
        acts_on: "attention matrices",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "the switch of torch, timm, transformers or diffusers for attention without its matrix") }),
        ..EMPTY
    },
    Row {
        id: "chunked-cross-entropy",
        label: Label::NumericallyEqual,
        change: "logits and loss in chunks of rows, each recomputed in its backward pass",
        acts_on: "logits",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Free, "logits and loss in parts") }),
        ..EMPTY
    },
    Row {
        id: "linear-cross-entropy",
        label: Label::NumericallyEqual,
        change: "the last linear layer and the loss as one function, a few rows at a time: never all logits",
        acts_on: "logits",
        lever: Some(AsLever { probe: Probe::Together, is_text: true, ..of(Stage::Free, "the last linear layer and the loss in parts, together") }),
        ..EMPTY
    },
    Row {
        id: "fused-optimizer",
        label: Label::NumericallyEqual,
        change: "fused=True: the step needs no lists of temporaries",
        acts_on: "temporaries of the optimizer's step",
        lever: Some(AsLever { probe: Probe::Apart, if_asked: true, ..of(Stage::Free, "one kernel for the step") }),
        ..EMPTY
    },
    Row {
        id: "channels-last",
        label: Label::NumericallyEqual,
        change: "model.to(memory_format=torch.channels_last): other convolution kernels, other workspaces",
        acts_on: "workspaces of convolutions",
        lever: Some(AsLever { if_asked: true, ..of(Stage::Free, "other convolution kernels") }),
        ..EMPTY
    },
    Row {
        id: "allocator",
        label: Label::Exact,
        change: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        acts_on: "fragmentation",
        lever: Some(of(Stage::Free, "`expandable_segments:True`")),
        ..EMPTY
    },
    Row {
        id: "gradient-checkpointing",
        label: Label::Exact,
        change: "the library's own switch for checkpoints",
        with_batch_norm: Some((Label::NumericallyEqual, "the library's own switch for checkpoints: batch norm then sees each batch twice")),
        acts_on: "activations",
        lever: Some(AsLever { probe: Probe::Together, ..of(Stage::Recompute, "the switch of transformers, diffusers or timm, or their Trainer's argument") }),
    },
    Row {
        id: "checkpoint",
        label: Label::Exact,
        change: "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        // It sees each batch twice: two updates of its running statistics are what one was, but for rounding.
        with_batch_norm: Some((Label::NumericallyEqual, "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False); for each BatchNorm inside, which then sees a batch twice, momentum = 1 - (1 - momentum) ** 0.5")),
        acts_on: "activations",
        lever: Some(of(Stage::Recompute, "chosen modules are computed again in the backward pass")),
    },
    Row {
        id: "selective-checkpoint",
        label: Label::Exact,
        change: "torch.utils.checkpoint.create_selective_checkpoint_contexts: a checkpoint that keeps matrix products, convolutions and attention",
        with_batch_norm: Some((Label::NumericallyEqual, "torch.utils.checkpoint.create_selective_checkpoint_contexts: a checkpoint that keeps matrix products, convolutions and attention; for each BatchNorm inside, which then sees a batch twice, momentum = 1 - (1 - momentum) ** 0.5")),
        acts_on: "activations",
        lever: Some(of(Stage::Recompute, "of chosen modules all but the results of matrix products, convolutions and attention is computed again")),
    },
    Row {
        id: "accumulate",
        label: Label::NumericallyEqual,
        change: "smaller batches with gradient accumulation",
        with_batch_norm: Some((Label::ChangesStatistics, "smaller batches with gradient accumulation: batch norm then sees the small ones")),
        acts_on: "activations, inputs",
        lever: Some(AsLever { probe: Probe::Apart, ..of(Stage::Divide, "smaller batches whose gradients add up") }),
    },
    Row {
        id: "offload",
        label: Label::Exact,
        change: "torch.autograd.graph.save_on_cpu(pin_memory=True)",
        acts_on: "activations",
        lever: Some(of(Stage::Offload, "what autograd keeps waits on the host")),
        ..EMPTY
    },
    Row {
        id: "offload-optimizer",
        // The same formulas by the CPU, whose sums round elsewhere.
        label: Label::NumericallyEqual,
        change: "torchao.optim.CPUOffloadOptimizer: Adam's state and its step on the host",
        acts_on: "optimizer state",
        lever: Some(of(Stage::Offload, "the state of Adam waits on the host, which makes its step")),
        ..EMPTY
    },
    Row {
        id: "half-frozen",
        label: Label::ChangesNumerics,
        change: "frozen parts in bfloat16",
        acts_on: "weights of frozen models",
        lever: Some(AsLever { if_asked: true, ..of(Stage::Precision, "frozen models in bfloat16") }),
        ..EMPTY
    },
    Row {
        id: "amp-bf16",
        label: Label::ChangesNumerics,
        change: "torch.autocast(\"cuda\", torch.bfloat16)",
        acts_on: "activations",
        lever: Some(of(Stage::Precision, "autocast; on GPUs that have bfloat16")),
        ..EMPTY
    },
    Row {
        id: "amp-fp16",
        label: Label::ChangesNumerics,
        change: "torch.autocast(\"cuda\", torch.float16) with torch.amp.GradScaler",
        acts_on: "activations",
        lever: Some(of(Stage::Precision, "autocast with scaled gradients; on older GPUs")),
        ..EMPTY
    },
    Row {
        id: "8bit-optimizer",
        // Its state lasts from step to step, and so does what is rounded away there.
        label: Label::ChangesTraining,
        change: "bitsandbytes.optim.AdamW8bit",
        acts_on: "optimizer state",
        lever: Some(of(Stage::Training, "Adam with moments of eight bits")),
        ..EMPTY
    },
    Row {
        id: "adafactor",
        label: Label::ChangesTraining,
        change: "torch.optim.Adafactor",
        acts_on: "optimizer state",
        lever: Some(of(Stage::Training, "Adafactor instead of Adam")),
        ..EMPTY
    },
    Row {
        id: "sgd",
        label: Label::ChangesTraining,
        change: "torch.optim.SGD with momentum",
        acts_on: "optimizer state",
        lever: Some(of(Stage::Training, "SGD with momentum instead of Adam")),
        ..EMPTY
    },
    Row {
        id: "lora",
        label: Label::ChangesTraining,
        change: "peft.get_peft_model(model, peft.LoraConfig(…)): small matrices are trained, the model is not",
        acts_on: "gradients, optimizer state",
        lever: Some(of(Stage::Training, "matrices of rank 16 beside all linear layers of numbered blocks are trained, the model is not")),
        ..EMPTY
    },
    Row {
        id: "fsdp",
        // With its part of the batch on each rank.
        label: Label::NumericallyEqual,
        change: "torch.distributed.fsdp.fully_shard on several GPUs",
        acts_on: "weights, gradients, optimizer state",
        lever: Some(of(Stage::Training, "weights, gradients and state in shards on 2, 4, 8 GPUs, measured as rank 0 with the whole batch; only proposed, where the state alone does not fit")),
        ..EMPTY
    },
    Row {
        id: "freeze",
        label: Label::ChangesTraining,
        change: "requires_grad_(False) and torch.no_grad() around the part that is not trained",
        acts_on: "gradients, optimizer state, activations",
        lever: Some(of(Stage::Training, "the largest parts are not trained")),
        ..EMPTY
    },
    by_hand("batch", Label::ChangesStatistics, "activations, inputs", "a smaller batch"),
    by_hand("capacity", Label::ChangesFunction, "buffers of experts", "a smaller capacity factor: more tokens are dropped"),
    by_hand("context", Label::ChangesFunction, "KV cache", "a shorter context: a shorter prompt, max_new_tokens, a sliding window"),
    by_hand("conv-before-upsampling", Label::ChangesFunction, "feature maps", "convolve at the small size and enlarge the result"),
    by_hand("correlate-on-demand", Label::NumericallyEqual, "correlation volumes", "compute only what is looked up, at each look: RAFT's alternate_corr, or a checkpoint around volume and lookup"),
    by_hand("cudnn-benchmark", Label::NumericallyEqual, "workspaces of convolutions", "torch.backends.cudnn.benchmark = False"),
    by_hand("depthwise-gate", Label::ChangesFunction, "unfolded windows", "a depthwise convolution over the same window: kernel² parameters a channel more, the same receptive field, but no softmax over neighbours"),
    by_hand("detach", Label::Exact, "graphs that are kept", "keep numbers, not graphs: loss.item() or loss.detach()"),
    by_hand("distributed", Label::NumericallyEqual, "replicas of the model", "DistributedDataParallel, one process a card"),
    by_hand("drop-batch", Label::Exact, "inputs", "prefetch into pinned memory of the host only, and `del` a batch at the end of its step"),
    by_hand("drop-results", Label::Exact, "results that are kept", "do not ask for results that are not used (output_hidden_states, return_intermediates, use_cache), or `del` them before the backward pass, or before the next step"),
    by_hand("encode-before", Label::Exact, "inputs of what is trained", "run it once over the data before training, and save what it gives (latents, embeddings); random augmentations need several"),
    by_hand("encode-in-parts", Label::NumericallyEqual, "temporaries of encoders", "encode a few samples at a time: torch.cat([encoder(part) for part in x.split(8)]), or enable_slicing() of a VAE"),
    by_hand("fewer-sequences", Label::Exact, "KV cache, temporaries of inference", "fewer inputs at once: a smaller batch computes the same in more calls"),
    by_hand("fused-function", Label::NumericallyEqual, "activations", "a fused function: F.gelu(x, approximate=\"tanh\"), F.silu, F.layer_norm, nn.RMSNorm, Liger's kernels, or torch.compile"),
    by_hand("grouped-experts", Label::NumericallyEqual, "buffers of experts", "products of groups of unequal size, without padding: torch._grouped_mm, MegaBlocks"),
    by_hand("half-weights", Label::ChangesNumerics, "weights of inference", "weights in half precision: model.to(torch.bfloat16), or dtype=torch.bfloat16 where it is loaded"),
    by_hand("indices", Label::Exact, "one-hot vectors", "class indices instead of one-hot vectors: an embedding, or cross_entropy with indices"),
    by_hand("inputs", Label::ChangesFunction, "activations, inputs", "smaller or fewer inputs: resolution, frames, points"),
    by_hand("layer-before-groups", Label::NumericallyEqual, "feature maps of neighbours", "the first linear layer before points are gathered: once for each point, not for each neighbour"),
    by_hand("model-offload", Label::Exact, "weights of inference", "models or layers that do not run at the moment wait on the CPU: enable_model_cpu_offload() of diffusers, device_map=\"auto\" of transformers"),
    by_hand("nearest", Label::NumericallyEqual, "pairs of points", "torch.topk(…, k, largest=False) instead of a sort of which the first k are used"),
    by_hand("no-grad", Label::Exact, "activations of an evaluation", "with torch.no_grad(): around the evaluation"),
    by_hand("no-retain", Label::Exact, "graphs that are kept", "backward() without retain_graph, or one backward pass over the sum of losses"),
    by_hand("not-followed", Label::Exact, "activations, gradients", "with torch.no_grad(): around it, if nothing before it is trained; else requires_grad_(False) on its parameters"),
    by_hand("quantise", Label::ChangesNumerics, "weights of inference", "weights of eight or four bits: bitsandbytes, torchao, GPTQ, AWQ"),
    by_hand("quantised-cache", Label::ChangesNumerics, "KV cache", "keys and values of fewer bits: generate(cache_implementation=\"quantized\")"),
    by_hand("remove-copy", Label::Exact, "copies", "do without the copy, or drop its source: work in place, keep one dtype, write into the joined tensor"),
    by_hand("remove-unused", Label::Exact, "weights", "remove parameters that no gradient reaches"),
    by_hand("small-mask", Label::NumericallyEqual, "attention masks", "is_causal=True instead of a causal mask; a mask of (batch, 1, 1, tokens), or a view by expand, which is not copied"),
    by_hand("sparse-grid", Label::ChangesFunction, "feature maps", "sparse convolutions (spconv, MinkowskiEngine), or larger voxels"),
    by_hand("static-cache", Label::NumericallyEqual, "KV cache", "a cache of its full length from the start, which is not copied while it grows: generate(cache_implementation=\"static\")"),
    by_hand("tiles", Label::NumericallyEqual, "pairs, unfolded windows", "in tiles of rows, or torch.cdist with its own backward pass"),
    Row {
        with_batch_norm: Some((Label::NumericallyEqual, "checkpoint the modules that the switch does not reach; for each BatchNorm inside, which then sees a batch twice, momentum = 1 - (1 - momentum) ** 0.5")),
        ..by_hand("whole-checkpoint", Label::Exact, "activations", "checkpoint the modules that the switch does not reach")
    },
];

/// What most rows do not say.
const EMPTY: Row = by_hand("", Label::Exact, "", "");

const fn by_hand(
    id: &'static str,
    label: Label,
    acts_on: &'static str,
    change: &'static str,
) -> Row {
    Row { id, label, change, with_batch_norm: None, acts_on, lever: None }
}

/// A lever that is tried in its stage without being asked.
const fn of(stage: Stage, does: &'static str) -> AsLever {
    AsLever { stage, does, if_asked: false, probe: Probe::No, is_text: false }
}
