"""What is known of single operators before any is run: by their exact names in PyTorch's database."""

# Nobody writes to what these give: only their shapes and types are compared.
UNWRITTEN = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}

# Samples that PyTorch refuses on every card, by what its error says; the other samples of these are compared.
NOT_ON_A_CARD = {
    "linalg.ldl_solve": "complex tensors with hermitian=True flag are not supported on CUDA",
    "linalg.lstsq": "`driver` other than `gels` is not supported on CUDA",
    "linalg.lstsq.grad_oriented": "`driver` other than `gels` is not supported on CUDA",
    "nn.functional.embedding_bag": "\"embedding_bag_backward_cuda_max\" not implemented for 'BFloat16'",
    "sparse.mm.reduce": "with arguments from the 'SparseCsrCUDA' backend",
    "tensor_split": "expected tensor_indices_or_sections to be on cpu",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "with arguments from the 'CUDA' backend",
}

# What PyTorch's kernels give otherwise on every card, and why: of which part, and what of it.
OTHER_ON_A_CARD = {
    ("_batch_norm_with_update", "result", "dtype"): "statistics of short numbers are long ones",
    ("_native_batch_norm_legit", "result", "dtype"): "statistics of short numbers are long ones",
    ("_native_batch_norm_legit", "result", "shape"): "statistics have a size where nothing is trained, too",
    ("native_batch_norm", "result", "dtype"): "statistics of short numbers are long ones",
    ("native_batch_norm", "result", "shape"): "statistics have a size where nothing is trained, too",
    ("native_layer_norm", "result", "dtype"): "statistics of short numbers are long ones",
    ("renorm", "gradients", "values"): "the CPU takes norms of complex numbers in double, and then has no largest number",
}
