//! What a frame of Python or C++ says, one row each: a new library is one more row.
//!
//! A row of Python is a part of a file's path, and functions in it (`*` for all); paths are compared with `/` between
//! their parts, whatever the system. A row of C++ is a part of a function's name.

use recording::{Category, Phase};

/// What runs below a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// A module is called; the next frame is its own.
    Call,
    /// A pass or step of this phase.
    Runs(Phase),
    /// Gradients are set to nothing.
    Zeroes,
    /// What is allocated there is this, with a name.
    Is(Category, &'static str),
    /// The same for what outlives its phase: the rest is scratch.
    Keeps(Category, &'static str),
    /// A model is built, loaded or moved to the card.
    Builds,
    /// Something is copied as a whole: a model, if it is as large as one.
    Copies,
}

/// Of the frames of a stack that say what an allocation is, the innermost counts.
pub(crate) struct Row {
    /// Part of the path of the file; empty for any file, where the function's name alone says it.
    pub(crate) file: &'static str,
    /// Names of functions; `*` for every one.
    pub(crate) functions: &'static [&'static str],
    pub(crate) says: Says,
}

const fn row(file: &'static str, functions: &'static [&'static str], says: Says) -> Row {
    Row { file, functions, says }
}

const GATHERED: Category = Category::Unsharded;
const SENT: Category = Category::Communication;
const STATE: Category = Category::Optimizer;

/// What people call the function that makes room for keys and values, in whatever file.
const KV_CACHES: [&str; 14] = [
    "allocate_kv_cache",
    "_allocate_kv_cache",
    "allocate_kv_caches",
    "alloc_kv_cache",
    "build_kv_cache",
    "create_kv_cache",
    "init_kv_cache",
    "_init_kv_cache",
    "initialize_kv_cache",
    "_initialize_kv_cache",
    "make_kv_cache",
    "set_kv_cache",
    "setup_kv_cache",
    "setup_kv_caches",
];

/// What the table says of a function of Python; the path has `/` between its parts.
pub(crate) fn says(file: &str, function: &str) -> Option<Says> {
    let fits = |names: &[&str]| names.iter().any(|name| *name == "*" || *name == function);
    let is_file = |part: &str| match file.rfind(part) {
        _ if part.is_empty() => true,
        // A whole name of a folder or file.
        Some(at) => at == 0 || file.as_bytes().get(at - 1) == Some(&b'/'),
        None => false,
    };
    PYTHON.iter().find(|row| fits(row.functions) && is_file(row.file)).map(|row| row.says)
}

#[rustfmt::skip]
const PYTHON: &[Row] = &[
    // PyTorch's own passes and steps.
    row("torch/nn/modules/module.py", &["_call_impl", "_wrapped_call_impl"], Says::Call),
    row("torch/autograd/graph.py", &["_engine_run_backward"], Says::Runs(Phase::Backward)),
    row("torch/autograd/__init__.py", &["backward", "grad"], Says::Runs(Phase::Backward)),
    row("torch/_tensor.py", &["backward"], Says::Runs(Phase::Backward)),
    row("torch/optim/optimizer.py", &["wrapper", "profile_hook_step", "_use_grad"], Says::Runs(Phase::Optimizer)),
    row("codegen(compiled_function_backward)", &["*"], Says::Runs(Phase::Backward)),
    row("torch/optim/lr_scheduler.py", &["wrapper"], Says::Runs(Phase::Optimizer)),
    row("torch/optim/", &["step"], Says::Runs(Phase::Optimizer)),
    row("torch/optim/", &["__init__"], Says::Keeps(STATE, "")),
    row("torch/nn/utils/clip_grad.py", &["*"], Says::Runs(Phase::BeforeOptimizer)),
    row("torch/amp/grad_scaler.py", &["unscale_", "_unscale_grads_"], Says::Runs(Phase::BeforeOptimizer)),
    row("torch/cuda/amp/grad_scaler.py", &["unscale_", "_unscale_grads_"], Says::Runs(Phase::BeforeOptimizer)),
    row("torch/optim/optimizer.py", &["zero_grad"], Says::Zeroes),
    row("torch/nn/modules/module.py", &["zero_grad"], Says::Zeroes),
    // Other optimizers.
    row("bitsandbytes/optim/", &["step"], Says::Runs(Phase::Optimizer)),
    row("apex/optimizers/", &["step"], Says::Runs(Phase::Optimizer)),
    row("deepspeed/ops/", &["step"], Says::Runs(Phase::Optimizer)),
    row("deepspeed/runtime/", &["step", "_take_model_step"], Says::Runs(Phase::Optimizer)),
    row("transformers/optimization.py", &["step"], Says::Runs(Phase::Optimizer)),
    row("torch/distributed/optim/", &["step"], Says::Runs(Phase::Optimizer)),
    row("deepspeed/runtime/zero/", &["initialize_optimizer_states", "_create_fp32_partitions"], Says::Keeps(STATE, "")),
    row("megatron/core/optimizer/", &["step"], Says::Runs(Phase::Optimizer)),
    row("megatron/core/optimizer/distrib_optimizer.py", &["_build_model_and_main_param_groups"], Says::Keeps(STATE, "")),
    row("transformer_engine/pytorch/optimizers/", &["step"], Says::Runs(Phase::Optimizer)),
    // Models come to the card.
    row("torch/nn/modules/module.py", &["_apply", "convert", "load_state_dict", "_load_from_state_dict"], Says::Builds),
    row("torch/nn/parameter.py", &["*"], Says::Builds),
    row("torch/nn/init.py", &["*"], Says::Builds),
    row("transformers/modeling_utils.py", &["from_pretrained", "_load_pretrained_model", "_load_state_dict_into_meta_model", "_load_parameter_into_model"], Says::Builds),
    row("transformers/core_model_loading.py", &["*"], Says::Builds),
    row("accelerate/utils/modeling.py", &["set_module_tensor_to_device", "load_checkpoint_in_model"], Says::Builds),
    row("safetensors/torch.py", &["*"], Says::Builds),
    row("diffusers/models/", &["from_pretrained", "load_model_dict_into_meta"], Says::Builds),
    row("bitsandbytes/nn/modules.py", &["_quantize", "cuda", "to"], Says::Builds),
    row("exllamav2/model.py", &["load", "load_gen", "load_autosplit", "load_autosplit_gen"], Says::Builds),
    row("vllm/model_executor/model_loader/", &["*"], Says::Builds),
    row("vllm/model_executor/layers/", &["create_weights", "__init__", "process_weights_after_loading"], Says::Builds),
    row("sglang/srt/model_loader/", &["*"], Says::Builds),
    row("copy.py", &["deepcopy", "_deepcopy_dict", "_reconstruct"], Says::Copies),
    // Batches come to the card.
    row("accelerate/utils/operations.py", &["send_to_device"], Says::Is(Category::Inputs, "")),
    row("lightning/fabric/utilities/apply_func.py", &["move_data_to_device"], Says::Is(Category::Inputs, "")),
    row("lightning_fabric/utilities/apply_func.py", &["move_data_to_device"], Says::Is(Category::Inputs, "")),
    row("transformers/trainer.py", &["_prepare_input", "_prepare_inputs"], Says::Is(Category::Inputs, "")),
    row("transformers/tokenization_utils_base.py", &["to"], Says::Is(Category::Inputs, "")),
    row("transformers/feature_extraction_utils.py", &["to"], Says::Is(Category::Inputs, "")),
    row("torch_geometric/data/", &["to", "cuda"], Says::Is(Category::Inputs, "")),
    row("mmengine/model/base_model/data_preprocessor.py", &["cast_data"], Says::Is(Category::Inputs, "")),
    row("fastai/torch_core.py", &["to_device"], Says::Is(Category::Inputs, "")),
    // Keys and values of language models.
    row("vllm/", &["_allocate_kv_cache", "_allocate_kv_cache_tensors", "_allocate_gpu_cache", "allocate_gpu_cache"], Says::Is(Category::KvCache, "KV cache (vLLM)")),
    row("vllm/v1/worker/", &["initialize_kv_cache", "initialize_kv_cache_tensors"], Says::Keeps(Category::KvCache, "KV cache (vLLM)")),
    row("sglang/srt/mem_cache/", &["_create_buffers", "__init__"], Says::Keeps(Category::KvCache, "KV cache (SGLang)")),
    row("text_generation_server/layers/attention/kv_cache.py", &["*"], Says::Keeps(Category::KvCache, "KV cache (TGI)")),
    row("transformers/cache_utils.py", &["update", "lazy_initialization", "__init__", "early_initialization"], Says::Is(Category::KvCache, "KV cache (transformers)")),
    row("lmdeploy/pytorch/engine/cache_engine.py", &["allocate_gpu_cache", "_allocate_cache"], Says::Is(Category::KvCache, "KV cache (LMDeploy)")),
    row("exllamav2/cache.py", &["create_state_tensors"], Says::Keeps(Category::KvCache, "KV cache (ExLlamaV2)")),
    row("flexgen/", &["init_cache_one_gpu_batch"], Says::Keeps(Category::KvCache, "KV cache (FlexGen)")),
    row("", &KV_CACHES, Says::Keeps(Category::KvCache, "KV cache")),
    // Sharded training.
    row("fairscale/nn/data_parallel/fully_sharded_data_parallel.py", &["_rebuild_full_params"], Says::Is(GATHERED, "gathered weights (FairScale)")),
    row("fairscale/nn/data_parallel/fully_sharded_data_parallel.py", &["_post_backward_hook"], Says::Is(SENT, "reduce-scatter buffers (FairScale)")),
    row("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", &["unshard"], Says::Is(SENT, "all-gather buffers (FSDP2)")),
    row("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", &["wait_for_unshard"], Says::Is(GATHERED, "gathered weights (FSDP2)")),
    row("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", &["post_backward"], Says::Is(SENT, "reduce-scatter buffers (FSDP2)")),
    row("torch/distributed/_composable/fsdp/_fsdp_param_group.py", &["unshard"], Says::Is(SENT, "all-gather buffers (FSDP2)")),
    row("torch/distributed/_composable/fsdp/_fsdp_param_group.py", &["wait_for_unshard"], Says::Is(GATHERED, "gathered weights (FSDP2)")),
    row("torch/distributed/_composable/fsdp/_fsdp_param_group.py", &["post_backward"], Says::Is(SENT, "reduce-scatter buffers (FSDP2)")),
    row("torch/distributed/fsdp/_flat_param.py", &["unshard"], Says::Is(GATHERED, "gathered weights (FSDP1)")),
    row("torch/distributed/fsdp/flat_param.py", &["unshard"], Says::Is(GATHERED, "gathered weights (FSDP1)")),
    row("torch/distributed/fsdp/_runtime_utils.py", &["_reduce_grad"], Says::Is(SENT, "reduce-scatter buffers (FSDP1)")),
    row("torch/nn/parallel/distributed.py", &["_ddp_init_helper"], Says::Keeps(SENT, "gradient buckets (DDP)")),
    row("torch/nn/parallel/distributed.py", &["_sync_module_states", "_sync_buffers"], Says::Is(SENT, "broadcast of parameters and buffers (DDP)")),
    row("torch/distributed/_functional_collectives.py", &["all_to_all_single", "all_to_all_single_autograd"], Says::Is(SENT, "all-to-all buffers of experts")),
    row("deepspeed/runtime/zero/partitioned_param_coordinator.py", &["__all_gather_params", "_PartitionedParameterCoordinator__all_gather_params"], Says::Is(GATHERED, "gathered weights (DeepSpeed)")),
    row("deepspeed/runtime/zero/stage_1_and_2.py", &["setup_buckets"], Says::Is(SENT, "gradient buckets (DeepSpeed)")),
    row("deepspeed/runtime/zero/stage3.py", &["__reduce_and_partition_ipg_grads", "_DeepSpeedZeroOptimizer_Stage3__reduce_and_partition_ipg_grads"], Says::Is(SENT, "gradient buckets (DeepSpeed)")),
    // Scratch memory.
    row("transformer_engine/pytorch/module/base.py", &["get_workspace"], Says::Is(Category::Workspace, "cuBLASLt workspace (Transformer Engine)")),
    // Trials of compilers.
    row("triton/testing.py", &["do_bench"], Says::Is(Category::Temporaries, "autotuning")),
    row("triton/runtime/autotuner.py", &["*"], Says::Is(Category::Temporaries, "autotuning")),
    row("torch/_inductor/runtime/benchmarking.py", &["*"], Says::Is(Category::Temporaries, "autotuning")),
    row("torch/_inductor/select_algorithm.py", &["*"], Says::Is(Category::Temporaries, "autotuning")),
    row("torch/_inductor/autotune_process.py", &["*"], Says::Is(Category::Temporaries, "autotuning")),
    row("torch/_inductor/fx_passes/pad_mm.py", &["*"], Says::Is(Category::Temporaries, "autotuning")),
];

/// Parts of names of C++ functions.
#[rustfmt::skip]
pub(crate) const CPP: &[(&str, Says)] = &[
    ("torch::autograd::Engine::", Says::Runs(Phase::Backward)),
    ("allocateCUDABlasWorkspace", Says::Is(Category::Workspace, "cuBLAS workspace")),
    ("getCUDABlasLtWorkspace", Says::Is(Category::Workspace, "cuBLASLt workspace")),
    ("parseChosenWorkspaceSize", Says::Is(Category::Workspace, "cuBLAS workspace")),
    ("getNewWorkspace", Says::Is(Category::Workspace, "cuBLAS workspace")),
    ("at::autocast::cached_cast", Says::Is(Category::Casts, "")),
    ("c10d::Reducer::", Says::Is(SENT, "gradient buckets (DDP)")),
    ("c10d::ProcessGroupNCCL::", Says::Is(SENT, "buffers of collectives")),
];

/// Parts of names of C++ functions that call a library, which may ask the allocator for a workspace.
pub(crate) const LIBRARIES: &[&str] =
    &["cudnn", "convolution", "Blas", "blas", "cublas", "cufft", "cusolver", "cusparse", "cutlass"];

/// Operators that bring something to the card or make it there.
#[rustfmt::skip]
pub(crate) const FACTORIES: &[&str] = &[
    "to", "cuda", "randn", "rand", "randint", "randperm", "zeros", "ones", "full", "empty", "arange", "linspace", "eye",
    "empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "randint_like", "full_like", "normal", "bernoulli",
];

/// Classes that others are made from, and what those are called.
pub(crate) const BASES: &[(&str, &str)] =
    &[("_BatchNorm", "BatchNorm"), ("_InstanceNorm", "InstanceNorm"), ("_ConvNd", "Conv")];

/// Code that a compiler puts between a module and its own pass.
pub(crate) const COMPILERS: &[&str] =
    &["torch/_functorch/", "torch/_inductor/", "torch/fx/", "/torchinductor_"];

/// Files of `torch/nn/modules` and the class whose pass runs there, where the source is not at hand. Of files with
/// many classes, the operator or function below decides.
#[rustfmt::skip]
pub(crate) const CLASSES: &[(&str, &[(&str, &str)])] = &[
    ("linear", &[("", "Linear")]),
    ("sparse", &[("embedding_bag", "EmbeddingBag"), ("", "Embedding")]),
    ("conv", &[("conv1d", "Conv1d"), ("conv3d", "Conv3d"), ("conv_transpose2d", "ConvTranspose2d"), ("", "Conv2d")]),
    ("normalization", &[("layer_norm", "LayerNorm"), ("native_layer_norm", "LayerNorm"), ("group_norm", "GroupNorm"), ("native_group_norm", "GroupNorm"), ("rms_norm", "RMSNorm"), ("local_response_norm", "LocalResponseNorm")]),
    ("batchnorm", &[("", "BatchNorm2d")]),
    ("activation", &[("relu", "ReLU"), ("relu_", "ReLU"), ("gelu", "GELU"), ("silu", "SiLU"), ("silu_", "SiLU"), ("sigmoid", "Sigmoid"), ("tanh", "Tanh"), ("softmax", "Softmax"), ("leaky_relu", "LeakyReLU"), ("multi_head_attention_forward", "MultiheadAttention")]),
    ("dropout", &[("", "Dropout")]),
    ("container", &[("", "Sequential")]),
    ("loss", &[("cross_entropy", "CrossEntropyLoss"), ("mse_loss", "MSELoss"), ("nll_loss", "NLLLoss")]),
    ("flatten", &[("", "Flatten")]),
    ("pooling", &[("max_pool2d", "MaxPool2d"), ("_max_pool2d", "MaxPool2d"), ("adaptive_avg_pool2d", "AdaptiveAvgPool2d"), ("avg_pool2d", "AvgPool2d")]),
    ("rnn", &[("lstm", "LSTM"), ("gru", "GRU")]),
    ("upsampling", &[("", "Upsample")]),
];

/// Files of `torch/optim`, and how many states of a weight's size their optimizer keeps; of `sgd` with momentum.
pub(crate) const STATES: &[(&str, usize)] = &[
    ("adam", 2),
    ("adamw", 2),
    ("adamax", 2),
    ("nadam", 2),
    ("radam", 2),
    ("sgd", 1),
    ("adagrad", 1),
    ("adadelta", 2),
    ("rprop", 2),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn category(file: &str, function: &str) -> Option<Category> {
        match says(file, function)? {
            Says::Is(category, _) | Says::Keeps(category, _) => Some(category),
            _ => None,
        }
    }

    #[test]
    fn servers_name_their_caches() {
        let site = "/usr/lib/python3/site-packages/";
        let caches = [
            ("vllm/worker/cache_engine.py", "allocate_gpu_cache"),
            ("vllm/worker/cache_engine.py", "_allocate_kv_cache"),
            ("vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors"),
            ("vllm/v1/worker/gpu_model_runner.py", "initialize_kv_cache"),
            ("vllm_ascend/worker/model_runner_v1.py", "initialize_kv_cache"),
            ("sglang/srt/mem_cache/memory_pool.py", "_create_buffers"),
            ("lmdeploy/pytorch/engine/cache_engine.py", "_allocate_cache"),
            ("exllamav2/cache.py", "create_state_tensors"),
            ("nanovllm/engine/model_runner.py", "allocate_kv_cache"),
            ("litgpt/model.py", "set_kv_cache"),
        ];
        for (file, function) in caches {
            let found = category(&format!("{site}{file}"), function);
            assert_eq!(found, Some(Category::KvCache), "{file}: {function}");
        }
        assert_eq!(category("/home/me/serve.py", "allocate_kv_cache"), Some(Category::KvCache));
    }

    #[test]
    fn a_part_of_a_name_is_no_file() {
        assert_eq!(says("/home/me/myvllm/engine.py", "allocate_gpu_cache"), None);
        assert_eq!(says("/home/me/serve.py", "create_state_tensors"), None);
        assert_eq!(says("/home/me/train.py", "forward"), None);
    }
}
