"""Compiles scale.cu, as a research repository does at its first import, and trains with it."""

import ctypes
import pathlib
import sys

import torch
from torch.utils.cpp_extension import load

HERE = pathlib.Path(__file__).resolve().parent

built = pathlib.Path(sys.argv[1])
load("scale_each", [str(HERE / "scale.cu")], build_directory=str(built), is_python_module=False)
scale = ctypes.CDLL(built / "scale_each.so").scale
scale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_longlong, ctypes.c_void_p]


def scaled(x, by):
    x, y = x.contiguous(), torch.empty_like(x)
    error = scale(x.data_ptr(), y.data_ptr(), by, x.numel(), torch.cuda.current_stream().cuda_stream)
    assert error == 0, f"cudaError_t {error}"
    return y


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return scaled(x, 3.0)

    @staticmethod
    def backward(context, gradient):
        return scaled(gradient, 3.0)


model = torch.nn.Linear(2048, 2048).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    Scale.apply(model(torch.randn(512, 2048, device="cuda"))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

# What a kernel of its own has written, Fathom does not know, though it knows the zeros that were there before.
known, unknown = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
scale(known.data_ptr(), unknown.data_ptr(), 1.0, 1000, torch.cuda.current_stream().cuda_stream)
rows = torch.empty(int((unknown > 0).sum()), 1000, device="cuda")
