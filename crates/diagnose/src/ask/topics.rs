//! What a question can be about, by the words that name it.

use std::ops::Range;

use super::words::Words;
use super::{Question, Reply};
use super::{
    about, adapters, allocator, attention, copies, gradients, loss, nothing, optimizer, parallel,
    precision, recompute, sizes,
};

/// A thing that is asked about.
pub(super) struct Topic {
    pub(super) name: &'static str,
    /// Phrases that name it; a word that ends with `*` is the beginning of one.
    phrases: &'static [&'static str],
    pub(super) reply: fn(&Question<'_>) -> Reply,
    rank: Rank,
}

/// Which topic counts where a question has words of several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Asks whether it fits: of changes, what they bring is asked, and this is why.
    Fit,
    /// A change.
    Change,
    /// What is so.
    Fact,
    /// A part of the memory, by its name alone.
    Part,
}

const fn change(
    name: &'static str,
    reply: fn(&Question<'_>) -> Reply,
    phrases: &'static [&'static str],
) -> Topic {
    Topic { name, phrases, reply, rank: Rank::Change }
}

const fn fact(
    name: &'static str,
    reply: fn(&Question<'_>) -> Reply,
    phrases: &'static [&'static str],
) -> Topic {
    Topic { name, phrases, reply, rank: Rank::Fact }
}

const fn part(
    name: &'static str,
    reply: fn(&Question<'_>) -> Reply,
    phrases: &'static [&'static str],
) -> Topic {
    Topic { name, phrases, reply, rank: Rank::Part }
}

/// All of them: whose names are longer, or say more, stand before those whose words they contain.
#[rustfmt::skip]
const TOPICS: &[Topic] = &[
    // Names that contain words of others.
    change("optimizer in the backward pass", optimizer::in_backward, &["optim* in backward", "optim* in the backward*", "optim* into the backward*", "optim* step in backward", "optim* step in the backward*", "step in the backward*", "fused backward*", "post accumulate grad*", "apply optimizer in backward", "lomo"]),
    change("zero_grad", gradients::zero_grad, &["zero grad", "zerograd", "set to none", "zero the gradient*", "zeroing gradient*"]),
    change("no_grad", gradients::no_grad, &["no grad", "nograd", "inference mode", "set grad enabled", "torch no grad", "grad enabled"]),
    change("the evaluation's batch", sizes::evaluation_batch, &["eval batch*", "evaluation batch*", "validation batch*", "val batch*", "test batch*", "batch* for eval*", "batch* for the eval*", "batch* for validation", "batch* in eval*", "batch* in validation", "batch* during eval*", "batch* during validation"]),
    change("eval", gradients::eval, &["model eval", "eval mode", "evaluation mode"]),
    change("clipping", nothing::clipping, &["clip grad*", "gradient clip*", "grad clip*", "clip the gradient*", "clipping"]),
    change("kept losses", allocator::kept_losses, &["accumul* loss*", "accumul* the loss*", "append* the loss*", "append* loss*", "losses in a list", "loss in a list", "total loss", "running loss", "sum* the loss*", "keep* the loss*"]),
    change("accumulate", gradients::accumulation, &["accumul*", "grad accum*", "micro batch*", "microbatch*"]),
    change("another norm", nothing::other_norm, &["group norm*", "groupnorm*", "layer norm*", "layernorm*", "rms norm*", "rmsnorm*", "instance norm*", "instancenorm*"]),
    change("batch norm", nothing::batch_norm, &["batch norm*", "batchnorm*", "sync bn", "syncbatchnorm"]),
    change("bucket view", parallel::bucket_view, &["gradient as bucket view", "bucket view"]),
    change("optimizer offload", optimizer::offload, &["offload* the optimizer*", "offload* optimizer*", "optimizer offload*", "optimizer state* offload*", "optimizer* to cpu", "optimizer on cpu", "optimizer* on the cpu", "optimizer* to the cpu", "optimizer state* to cpu", "optimizer state* to the cpu", "optimizer state* on the cpu", "optimizer state* on cpu", "zero offload", "deepspeedcpuadam", "cpu adam", "cpuadam", "cpu offload the optimizer*", "paged adam*", "paged optimizer*", "cpuoffloadoptimizer", "adam* state* to cpu", "adam* state* to the cpu", "adam* state* to host*", "adam* state* to the host*", "adam* state* on cpu", "adam* state* on the cpu", "adam* to cpu", "adam* to the cpu", "adam* on the cpu", "optimizer* to host*", "optimizer* to the host*", "optimizer* on the host", "optimizer state* to host*", "optimizer state* to the host*", "optimizer state* on the host", "optim* state* to host*", "moments to cpu", "moments to the cpu", "moments to host*", "moments on the cpu"]),
    change("activation offload", recompute::offload, &["save on cpu", "activation* offload*", "offload* activation*", "offload* the activation*", "activation* to cpu", "activation* to the cpu"]),
    change("weights offload", adapters::offload, &["enable model cpu offload", "enable sequential cpu offload", "model cpu offload", "offload* the model", "offload* model", "offload* weight*", "offload* the weight*", "offload* parameter*", "param* offload*", "device map auto", "layer* offload*"]),
    change("cpu offload", recompute::any_offload, &["cpu offload*", "offload* to cpu", "offload* to the cpu", "offload* to ram", "offload*"]),
    change("QLoRA", adapters::qlora, &["qlora", "q lora"]),
    change("LoRA", adapters::lora, &["lora", "peft", "adapter*", "low rank*", "dora"]),
    change("quantised cache", attention::kv_cache, &["kv cache*", "kvcache", "key value cache", "past key value*", "use cache", "static cache", "quantized cache", "quantised cache", "cache implementation", "paged attention", "pagedattention"]),
    change("8-bit optimizer", optimizer::eight_bits, &["8bit adam*", "8 bit adam*", "adam 8bit", "adam8bit", "adamw8bit", "adamw 8bit", "adam 8 bit", "adamw 8 bit", "8bit optim*", "8 bit optim*", "bitsandbytes optim*", "bnb optim*", "bnb adam*", "int8 optim*", "quanti* optim*", "optim* in 8 bit", "optim* in 8bit", "bitsandbytes adam*", "lion8bit", "8bit lion", "optim states 8bit", "fp8 optim*", "optim* state* in 8 bit", "optim* state* in 8bit"]),
    change("4-bit optimizer", optimizer::eight_bits, &["4bit adam*", "4 bit adam*", "adamw4bit", "4bit optim*", "4 bit optim*"]),
    change("head_dim", attention::head_dim, &["head dim*", "headdim", "dim per head", "dim head", "width of a head", "head size", "size of each head"]),
    change("heads", attention::heads, &["attention head*", "num head*", "n head*", "nhead", "number of head*", "head count", "heads"]),
    change("grouped queries", attention::grouped, &["multi query*", "grouped query*", "gqa", "mqa", "fewer kv heads", "kv heads", "num key value heads"]),
    change("another attention", attention::other, &["sparse attention", "sliding window*", "local attention", "window* attention", "linear attention", "block sparse*", "longformer", "performer", "linformer"]),
    change("fused loss", loss::fused, &["fused cross entropy", "chunked cross entropy", "liger* fused*", "liger cross entropy", "liger* cross*", "fused linear cross entropy", "linear cross entropy", "cut cross entropy", "cce", "chunk* loss*", "chunk* cross*", "fused* loss*", "fused linear*", "chunk* logit*", "chunk* the logit*", "chunk* the loss", "cross entropy in chunk*", "loss in chunk*", "liger loss*", "fuse* the cross entropy*", "fuse* cross entropy*", "fuse* the loss*", "fuse* the lm head*", "fuse* lm head*", "fuse* the head*"]),
    change("Liger kernels", loss::liger, &["liger*"]),
    change("fused attention", attention::fused, &["flash attention*", "flash attn*", "flashattention*", "flash attn", "flashattn*", "flash", "sdpa", "xformers", "scaled dot product*", "memory efficient attention", "fused attention", "flexattention", "flex attention", "attention slicing", "torch sdp*", "mem efficient sdp"]),
    change("attention's layers", attention::matrices, &["attention layer*", "attention block*", "self attention", "attention module*"]),
    change("eager attention", attention::eager, &["eager attention", "math attention", "attn implementation eager", "naive attention", "math sdp", "enable math sdp", "vanilla attention"]),
    change("channels_last", allocator::channels_last, &["channels last", "channelslast", "nhwc", "memory format"]),
    change("cudnn.benchmark", allocator::cudnn_benchmark, &["cudnn benchmark", "backends cudnn benchmark", "benchmark mode", "benchmark"]),
    change("deterministic", allocator::workspace, &["cudnn deterministic", "deterministic*", "workspace config", "cublas workspace*"]),
    change("fused optimizer", optimizer::fused, &["fused adam*", "fused optim*", "adam* fused", "optimizer fused", "fused", "fused step"]),
    change("foreach", optimizer::foreach, &["foreach", "for each", "multi tensor", "multitensor"]),
    change("torch.compile", recompute::compile, &["torch compile*", "compile*", "inductor", "torchinductor", "dynamo", "cudagraph*", "cuda graph*", "reduce overhead"]),
    change("FSDP", parallel::fsdp, &["fsdp*", "fully shard*", "fullyshard*", "shard* data parallel", "zero 3", "zero3", "zero stage 3", "deepspeed stage 3", "stage 3", "shard* the model", "shard* model", "shard* weight*", "shard* the weight*", "shard* parameter*"]),
    change("ZeRO-2", parallel::zero_two, &["zero 2", "zero2", "zero stage 2", "deepspeed stage 2", "stage 2", "shard* grad*", "shard* the grad*"]),
    change("ZeRO-1", parallel::zero_one, &["zero 1", "zero1", "zero stage 1", "deepspeed stage 1", "stage 1", "zeroredundancyoptimizer", "shard* optim*", "shard* the optim*", "zero redundancy*", "distributed optimizer"]),
    change("ZeRO", parallel::fsdp, &["deepspeed", "use zero", "with zero", "does zero", "would zero", "zero optimizer*", "zero shard*"]),
    change("tensor parallelism", parallel::split_model, &["tensor parallel*", "pipeline parallel*", "model parallel*", "context parallel*", "sequence parallel*", "megatron", "expert parallel*", "split* the model*", "split* model*"]),
    change("DDP", parallel::ddp, &["ddp", "distributed data parallel*", "distributeddataparallel", "multi gpu", "multigpu", "multiple gpu*", "more gpu*", "two gpu*", "2 gpu*", "4 gpu*", "8 gpu*", "second gpu", "several gpu*", "another gpu"]),
    change("DataParallel", parallel::data_parallel, &["nn dataparallel", "dataparallel", "data parallel*"]),
    change("tied embeddings", copies::tied, &["tie* the embed*", "tie* embed*", "tied embed*", "weight tying", "tie* weight*", "tie* the weight*", "tied weight*", "share* the embed*", "share* embed*", "tie* the input*", "tie word embed*"]),
    change("shared weights", copies::shared, &["share* weight*", "share* the weight*", "share* param*", "sharing weight*", "weight sharing"]),
    change("EMA", copies::copies, &["ema", "exponential moving average", "moving average", "teacher*", "averaged model", "averagedmodel", "swa", "polyak", "target network*", "model averag*", "weight averag*"]),
    // Freezing and weights of fewer bits.
    change("unfreeze", adapters::unfreeze, &["unfreez*", "unfrozen", "requires grad true", "full fine tun*", "full finetun*"]),
    change("freeze", adapters::freezing, &["freez*", "frozen", "requires grad", "requires grad false", "linear prob*", "train only*", "only train*", "fine tune only*"]),
    change("weights of few bits", adapters::quantise, &["load in 4bit", "load in 8bit", "4bit", "4 bit", "8 bit", "8bit", "int8", "int4", "nf4", "gptq", "awq", "quanti*", "bitsandbytes", "bnb", "torchao", "gguf"]),
    // Precision.
    change("half precision throughout", precision::half_weights, &["model half", "half model", "pure bf16", "pure fp16", "pure bfloat16", "pure half", "weight* to fp16", "weight* to bf16", "weight* to half*", "weight* to float16", "weight* to bfloat16", "param* to fp16", "param* to bf16", "param* to half*", "param* to bfloat16", "model to fp16", "model to bf16", "model to half*", "model to float16", "model in half*", "weights in bf16", "weights in fp16", "weights in half*", "weights in bfloat16", "bf16 weight*", "bf16 param*", "fp16 weight*", "half the weight*", "model to bfloat16", "model to torch bfloat16", "to torch bfloat16", "to bfloat16", "to torch float16", "torch dtype bfloat16", "dtype torch bfloat16", "torch dtype torch bfloat16", "set default dtype", "model in bf16", "model in bfloat16", "model in fp16", "everything in bf16", "model bfloat16", "bf16 model", "full bf16"]),
    change("TF32", nothing::tf32, &["tf32", "float32 matmul precision", "matmul precision"]),
    change("float8", precision::float8, &["fp8", "float8", "transformer engine", "fp4", "mxfp*"]),
    change("full precision", precision::full, &["full precision", "fp32", "float32", "single precision", "float64", "fp64", "double precision"]),
    change("autocast", precision::autocast, &["amp", "autocast", "fp16", "bf16", "bfloat16", "float16", "half precision", "mixed precision", "16 bit", "16bit", "lower precision", "gradscaler", "grad scaler", "precision", "half float"]),
    // Recomputing.
    change("checkpoint", recompute::checkpoint, &["gradient checkpoint*", "activation checkpoint*", "grad checkpoint*", "checkpoint*", "recomput*", "rematerial*", "remat", "reversible", "use reentrant", "selective checkpoint*"]),
    // The optimizer.
    change("SGD", optimizer::sgd, &["sgd", "without momentum", "no momentum", "stateless optim*"]),
    change("Adafactor", optimizer::small_state, &["adafactor", "galore", "sm3", "apollo", "adam mini", "adalomo"]),
    change("one moment", optimizer::one_moment, &["lion", "muon", "rmsprop", "adagrad", "momentum"]),
    change("another optimizer", optimizer::other, &["shampoo", "soap", "sophia*", "adahessian", "k fac", "kfac", "prodigy", "adan", "lars", "lbfgs", "l bfgs", "another optimizer", "different optimizer", "other optimizer", "change the optimizer", "switch optimizer*", "switch the optimizer"]),
    change("Adam", optimizer::adam, &["adam", "adamw", "lamb", "nadam", "radam"]),
    // The allocator.
    change("empty_cache", allocator::cache, &["empty cache", "emptycache", "empty the cache", "clear cache", "clear the cache", "clearing the cache", "clear the cuda cache", "clear cuda cache", "clear gpu memory", "clear the gpu memory", "free the cache", "flush the cache", "emptying the cache", "emptying cache", "clear gpu cache", "ipc collect"]),
    change("gc.collect", allocator::garbage, &["gc collect", "garbage collect*", "gc"]),
    change("del", allocator::delete, &["del", "detach", "loss item", "retain graph"]),
    change("allocator settings", allocator::settings, &["expandable segment*", "max split size*", "garbage collection threshold", "pytorch cuda alloc conf", "pytorch alloc conf", "alloc conf", "roundup power2*", "cudamallocasync", "backend cudamallocasync", "allocator setting*", "allocator", "pytorch no cuda memory caching", "memory pool", "set per process memory fraction"]),
    // The host, and what takes no memory.
    change("the host's memory", nothing::host, &["num worker*", "numworker*", "worker*", "dataloader worker*", "pin memory", "pinned memory", "pinmemory", "prefetch*", "persistent worker*", "swap space", "swap file", "more swap", "swapfile", "more ram", "system ram", "cpu ram", "host memory", "ram", "shm", "non blocking"]),
    change("no memory", nothing::no_memory, &["learning rate", "lr", "weight decay", "scheduler", "warmup", "warm up", "seed", "epoch*", "shuffl*", "logging", "wandb", "tensorboard", "label smoothing", "betas", "num steps", "more steps", "training steps", "max steps"]),
    change("the data set", nothing::dataset, &["dataset*", "data set*", "training data", "training samples", "number of samples"]),
    change("dropout", recompute::dropout, &["dropout", "drop path", "stochastic depth"]),
    change("inplace", recompute::inplace, &["inplace", "in place"]),
    // Sizes.
    change("vocabulary", sizes::vocabulary, &["vocab*", "num classes", "number of classes", "classes"]),
    change("tokens", sizes::tokens, &["sequence length", "seq len*", "seq length", "seqlen", "context length", "context window", "context size", "block size", "max length", "max seq*", "max len*", "sequence*", "longer context", "shorter context", "context of", "context", "tokens", "token count", "number of tokens", "prompt length", "max new tokens", "max position*"]),
    change("patch size", sizes::patch, &["patch size", "patch", "patches"]),
    change("input size", sizes::inputs, &["resolution*", "image size*", "img size", "image", "crop size", "input size", "input resolution", "frame", "points", "number of points", "point cloud*", "voxel", "number of frames", "num points", "groups", "num groups", "number of groups", "pixels", "video length", "crop*", "audio length"]),
    change("depth", sizes::layers, &["num layer*", "number of layer*", "n layer*", "layer", "block", "depth", "deeper", "shallower", "deeper model", "shallower model"]),
    change("width", sizes::width, &["hidden size", "hidden dim*", "hidden", "d model", "width", "embed dim*", "embedding dim*", "embedding size", "n embd", "channels", "base channels", "wider", "narrower", "mlp ratio", "feedforward", "ffn", "intermediate size", "smaller model", "bigger model", "larger model", "model size"]),
    change("batch", sizes::batch, &["batch size*", "batchsize", "batch", "batches", "bs", "mini batch*", "minibatch*", "samples per step"]),
    // What is so.
    Topic { name: "the largest batch", phrases: &["largest batch*", "biggest batch*", "max batch*", "maximum batch*", "how big a batch", "how large a batch", "how large can the batch*", "how big can the batch*", "what batch*", "which batch*"], reply: about::largest_batch, rank: Rank::Fit },
    Topic { name: "fits", phrases: &["will it fit", "does it fit", "does this fit", "will this fit", "can it fit", "can i train*", "can i run*", "can this run*", "would it fit", "would this fit", "fit on*", "fits on*", "fit in*", "fits in*", "fit into*", "run on a*", "run on my*", "run on the*", "run on one*", "will this run*", "will it run*", "does it run*", "does this run*", "can it run*", "train on a*", "train on my*", "enough for", "be enough", "is enough", "enough", "does it need more than", "fit", "how much memory do i need", "how much vram do i need", "which gpu", "what gpu", "what card", "which card", "smallest gpu"], reply: about::fits, rank: Rank::Fit },
    fact("leak", about::leak, &["leak*", "memory grow*", "grows", "growing", "every step more", "keeps increasing", "keep increasing", "increases every step", "memory increas*", "go up", "goes up", "going up", "oom at step", "oom after*", "oom later", "out of memory after*", "out of memory later", "out of memory at step", "after many steps", "later steps"]),
    fact("fragmentation", about::fragmentation, &["fragment*", "reserved but unallocated", "reserved memory", "reserved", "cached memory"]),
    fact("line", about::line, &["which line*", "what line*", "line of code", "source line*", "lines"]),
    fact("layer", about::layer, &["which layer*", "what layer*", "which module*", "what module*", "which block*", "which part of the model", "what part of the model"]),
    fact("tensor", about::tensor, &["largest tensor*", "biggest tensor*", "which tensor*", "what tensor*"]),
    fact("when", about::when, &["when", "which phase", "what phase", "which step", "at what point", "during the backward*", "during backward", "during forward"]),
    fact("what to change", about::change, &["what should i change", "what can i do", "what should i do", "how do i reduce", "how can i reduce", "how to reduce", "how do i lower", "how can i lower", "how to lower", "what would help", "what helps", "reduce memory", "save memory", "lower the peak", "reduce the peak", "fix", "what can i change", "how do i make it fit", "use less memory"]),
    fact("why", about::why, &["why so much", "why so high", "why does it need", "why is it", "why does it", "why do i", "why am i", "why", "reason", "root cause", "main cause", "what causes", "cause", "out of memory", "oom"]),
    fact("where", about::whereabouts, &["where does*", "where is*", "where do*", "where", "what takes", "what uses", "what is using", "whats using", "whats taking", "what eats", "whats eating", "what is eating", "eating", "eats", "hog*", "what holds", "breakdown", "who holds", "what is taking", "what is in", "what dominates", "biggest consumer", "main consumer", "how much memory", "peak"]),
    // Parts of the memory.
    part("optimizer", about::optimizer, &["optimizer*", "optimiser*", "moments"]),
    part("gradients", about::gradients, &["gradient*", "grads"]),
    part("activations", about::activations, &["activation*", "saved tensor*", "intermediate*"]),
    part("weights", about::weights, &["how big is the model", "how large is the model", "size of the model", "how many param*", "weight*", "parameter*", "params"]),
    part("inputs", about::inputs, &["input*", "data"]),
    part("workspace", about::workspace, &["workspace*", "cudnn", "cublas"]),
    part("temporaries", about::temporaries, &["temporar*"]),
    part("attention", attention::matrices, &["attention", "attn"]),
    part("logits", loss::logits, &["logit*", "cross entropy", "lm head", "output layer"]),
    part("CUDA context", about::context, &["cuda context", "nvidia smi", "context memory", "driver"]),
];

/// What the question is about, and where its name stands: the changes that it names; else what it asks about.
///
/// `is_module` knows names of modules: behind `checkpoint` and `freeze` they are no topics of their own.
pub(super) fn find(
    words: &mut Words,
    is_module: impl Fn(&str) -> bool,
) -> Vec<(&'static Topic, Range<usize>)> {
    let mut found: Vec<(&'static Topic, Range<usize>)> = Vec::new();
    // Questions of which a change is only a part of the name, such as the largest batch and which layer.
    let questions = TOPICS.iter().filter(|topic| topic.rank == Rank::Fit || is_which(topic));
    for topic in questions.chain(TOPICS.iter().filter(|topic| topic.rank == Rank::Change)) {
        if let Some(span) = longest(words, topic) {
            words.take(&span);
            // What else names it names nothing else.
            while let Some(again) = longest(words, topic) {
                words.take(&again);
            }
            if TAKES_MODULES.contains(&topic.name) {
                words.set_aside(&is_module);
            }
            found.push((topic, span));
        }
    }
    for rank in [Rank::Fact, Rank::Part] {
        if found.is_empty() {
            let topic = TOPICS.iter().filter(|topic| topic.rank == rank);
            let first = topic.filter_map(|topic| Some((topic, longest(words, topic)?))).next();
            found.extend(first);
        }
    }
    settle(words, found)
}

/// Changes, and what their names bring along: `only train LoRA adapters`, `the loss in chunks of 1024 tokens`,
/// `paged AdamW 8bit`. The loss is one of Liger's kernels.
const WHOLE: &[(&str, &[&str])] = &[
    ("fused loss", &["Liger kernels", "tokens"]),
    ("QLoRA", &["LoRA", "freeze", "weights of few bits"]),
    ("LoRA", &["freeze"]),
    ("8-bit optimizer", &["weights of few bits", "Adam"]),
    ("4-bit optimizer", &["weights of few bits", "Adam"]),
    (
        "optimizer offload",
        &["weights of few bits", "8-bit optimizer", "Adam", "cpu offload", "the host's memory"],
    ),
    ("another attention", &["tokens"]),
    ("tied embeddings", &["depth", "width"]),
    ("shared weights", &["depth"]),
    ("kept losses", &["accumulate"]),
    ("SGD", &["Adam", "one moment"]),
];

/// Changes that are made to modules.
const TAKES_MODULES: [&str; 3] = ["checkpoint", "freeze", "unfreeze"];

/// `which layer` asks; `layer` alone is the depth.
fn is_which(topic: &Topic) -> bool {
    matches!(topic.name, "line" | "layer" | "tensor" | "leak" | "fragmentation" | "CUDA context")
}

/// The longest of a topic's phrases that stand in the question.
fn longest(words: &Words, topic: &Topic) -> Option<Range<usize>> {
    let spans = topic.phrases.iter().filter_map(|phrase| words.find(phrase));
    spans.max_by_key(|span| span.len())
}

/// Of several topics those that count.
fn settle(
    words: &Words,
    mut found: Vec<(&'static Topic, Range<usize>)>,
) -> Vec<(&'static Topic, Range<usize>)> {
    // `SGD instead of Adam` asks about SGD.
    if 1 < found.len() {
        let kept: Vec<_> =
            found.iter().filter(|(_, span)| !words.is_replaced(span)).cloned().collect();
        found = if kept.is_empty() { found } else { kept };
    }
    // `FSDP on 4 GPUs` asks about FSDP.
    const SHARDS: [&str; 6] =
        ["DataParallel", "FSDP", "ZeRO", "ZeRO-1", "ZeRO-2", "tensor parallelism"];
    if found.iter().any(|(topic, _)| SHARDS.contains(&topic.name)) {
        found.retain(|(topic, _)| topic.name != "DDP");
    }
    // `freeze the first layers`: which, not how many.
    if found.iter().any(|(topic, _)| TAKES_MODULES.contains(&topic.name)) {
        found.retain(|(topic, _)| !matches!(topic.name, "depth" | "attention's layers"));
    }
    // What one change is made of, or how it is set, is no second change.
    for (whole, parts) in WHOLE {
        if found.iter().any(|(topic, _)| topic.name == *whole) {
            found.retain(|(topic, _)| !parts.contains(&topic.name));
        }
    }
    // `does expandable_segments help with fragmentation` asks about the setting.
    if found.iter().any(|(topic, _)| topic.rank == Rank::Change) {
        found.retain(|(topic, _)| topic.name != "fragmentation");
    }
    let ranks = |found: &[(&'static Topic, Range<usize>)], wanted: Rank| {
        found.iter().any(|(topic, _)| topic.rank == wanted)
    };
    // Whether it fits with a change is asked of the change.
    if ranks(&found, Rank::Change) && ranks(&found, Rank::Fit) && !asks_largest(&found) {
        found.retain(|(topic, _)| topic.rank == Rank::Change);
    }
    if asks_largest(&found) || ranks(&found, Rank::Fact) || ranks(&found, Rank::Part) {
        found.truncate(1);
    }
    found
}

fn asks_largest(found: &[(&'static Topic, Range<usize>)]) -> bool {
    found.first().is_some_and(|(topic, _)| topic.name == "the largest batch")
}
