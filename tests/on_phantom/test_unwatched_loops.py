"""Work that no function of torch's is seen for: extensions and compiled programs call CUDA themselves. What they may have
written to is not known any more; what they cannot reach stays known."""

import ctypes

import pytest
import torch
from fathom._doorway import functions

SIDE = 64
cuda = ctypes.CDLL(None)


def is_known(tensor):
    known, _ = functions.install().ledger.known(tensor, 1.0)
    return known is not None


def matrices(count):
    made = [torch.full((SIDE, SIDE), float(number), device="cuda") for number in range(count)]
    assert all(map(is_known, made))
    return made


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def test_a_matrix_product_of_an_extension():
    a, b, out, other = matrices(4)
    one, handle = ctypes.c_float(1.0), ctypes.c_void_p(torch.cuda.current_blas_handle())
    sides = [ctypes.c_int(SIDE)] * 3
    length = ctypes.c_int(SIDE)
    numbers = (*sides, ctypes.byref(one), pointer(a), length, pointer(b), length, ctypes.byref(one), pointer(out), length)
    assert cuda.cublasSgemm_v2(handle, 0, 0, *numbers) == 0
    assert not is_known(out) and is_known(other)


def test_matrix_products_whose_results_are_named_on_the_card():
    [out] = matrices(1)
    addresses = torch.tensor([out.data_ptr()], device="cuda")
    one, handle = ctypes.c_float(1.0), ctypes.c_void_p(torch.cuda.current_blas_handle())
    sides, length, at = [ctypes.c_int(SIDE)] * 3, ctypes.c_int(SIDE), pointer(addresses)
    numbers = (*sides, ctypes.byref(one), at, length, at, length, ctypes.byref(one), at, length, ctypes.c_int(1))
    assert cuda.cublasSgemmBatched(handle, 0, 0, *numbers) == 0
    assert not is_known(out)


def test_a_program_of_torch_script():
    @torch.jit.script
    def multiply(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor):
        torch.mm(a, b, out=out)

    a, b, out, other = matrices(4)
    multiply(a, b, out)
    assert not is_known(out) and is_known(other)


@pytest.fixture(scope="module")
def kernel():
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry writes() { ret; }\n\0"
    torch.ones(1, device="cuda")
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"writes") == 0
    return function


def launch(kernel, arguments=None, extra=None):
    sizes = [ctypes.c_uint(1)] * 6
    assert cuda.cuLaunchKernel(kernel, *sizes, ctypes.c_uint(0), None, arguments, extra) == 0


def test_a_kernel_with_a_list_of_arguments(kernel):
    out, other = matrices(2)
    number, address = ctypes.c_int(7), ctypes.c_uint64(out.data_ptr())
    places = [ctypes.addressof(number), ctypes.addressof(address), None]
    launch(kernel, (ctypes.c_void_p * len(places))(*places))
    assert not is_known(out) and is_known(other)


def test_a_kernel_with_arguments_in_one_piece(kernel):
    out, other = matrices(2)
    arguments = (ctypes.c_uint64 * 3)(7, out.data_ptr(), 0)
    size = ctypes.c_size_t(ctypes.sizeof(arguments))
    buffer_pointer, buffer_size, end = 1, 2, None
    words = [buffer_pointer, ctypes.addressof(arguments), buffer_size, ctypes.addressof(size), end]
    launch(kernel, extra=(ctypes.c_void_p * len(words))(*words))
    assert not is_known(out) and is_known(other)
