"""What the document counts, beside what is: module outputs, what autograd keeps, and two single layers.

    fathom run --gpu a10g -- python examples/avatar/count.py --config examples/avatar/document.yaml

The document adds up the outputs of all modules by forward hooks. That counts a map again for every container around its
layer and misses what functions put out; backward needs other tensors: inputs of convolutions, inputs of batch norm and
of GELU, indices of pooling. `saved_tensors_hooks` sees these; each storage is counted once, parameters are not.
"""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.config import from_command_line
from train import Diffusion, avatars, build_model

MIB = 2**20


def put_out_by_modules(model, run):
    """The bytes that forward hooks see modules put out: of all of them, and of those without children."""
    every, leaves = 0, 0

    def hook(module, _inputs, output):
        nonlocal every, leaves
        size = sum(x.nbytes for x in (output if isinstance(output, tuple) else (output,)) if torch.is_tensor(x))
        every += size
        leaves += size if not list(module.children()) else 0

    handles = [module.register_forward_hook(hook) for module in model.modules()]
    run()
    for handle in handles:
        handle.remove()
    return every, leaves


def kept_for_backward(model, run):
    """The bytes of the storages that autograd keeps, parameters excepted."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = run()  # while the loss lives no storage is freed, so no address stands for two
    del loss
    return sum(storages.values())


def single_layers():
    """The two layers of the document: parameters, input and output elements."""
    layers = {
        "Conv2d(3, 64)": (nn.Conv2d(3, 64, 3, 1, 1), torch.randn(1, 3, 224, 224)),
        "Linear(1024, 1024)": (nn.Linear(1024, 1024), torch.randn(1, 1024)),
    }
    for name, (layer, x) in layers.items():
        count = sum(p.numel() for p in layer.parameters())
        print(f"{name}: parameters {count}, input {x.numel()}, output {layer(x).numel()}")


def main(config):
    single_layers()
    device = torch.device(config.device)
    model = build_model(config, device)
    diffusion = Diffusion(config.diffusion, device)
    generator = torch.Generator().manual_seed(config.seed)
    batch = avatars(config.training.batch_size, config.data.image_size, config.model.n_attributes, generator)
    images, attributes = (x.to(device) for x in batch)

    def forward():
        return diffusion.loss(model, images, attributes)

    with torch.no_grad():
        every, leaves = put_out_by_modules(model, forward)
    kept = kept_for_backward(model, forward)
    print(f"input images {images.nbytes / MIB:.2f} MiB")
    print(f"module outputs, containers included {every / MIB:.0f} MiB, of layers only {leaves / MIB:.0f} MiB")
    print(f"kept for backward {kept / MIB:.0f} MiB, the hook sum is {every / kept:.2f} times that")


if __name__ == "__main__":
    main(from_command_line(__doc__))
