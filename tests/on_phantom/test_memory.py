"""Memory is PyTorch's own allocator on a card of a stated size."""

import gc
import os
import re

import pytest
import torch

MIB = 1 << 20
GIB = 1 << 30


def block(count):
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_card_is_the_one_asked_for():
    properties = torch.cuda.get_device_properties(0)
    assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_name() == properties.name == "NVIDIA GeForce RTX 3090"
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor) == (8, 6)
    assert properties.multi_processor_count == 82
    assert properties.total_memory == torch.cuda.mem_get_info()[1]
    assert 23 * GIB < properties.total_memory < 24 * GIB
    assert torch.cuda.is_bf16_supported()
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() >= 90000


def test_statistics_follow_allocations(fresh):
    free, total = torch.cuda.mem_get_info()
    before = torch.cuda.memory_allocated()
    x = block(100 * MIB)
    assert torch.cuda.memory_allocated() - before == 100 * MIB
    assert free - torch.cuda.mem_get_info()[0] == 100 * MIB
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    del x
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() == before + 100 * MIB
    assert torch.cuda.mem_get_info()[0] == free - 100 * MIB  # cached
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info() == (free, total)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before
    assert "Allocated memory" in torch.cuda.memory_summary()


def test_small_blocks_share_a_segment(fresh):
    reserved = torch.cuda.memory_reserved()
    blocks = [block(1000) for _ in range(100)]
    assert torch.cuda.memory_reserved() - reserved <= 2 * MIB
    stats = torch.cuda.memory_stats()
    assert stats["requested_bytes.all.current"] < stats["allocated_bytes.all.current"]
    del blocks


def test_the_last_block_that_fits(fresh, refused):
    free, _ = torch.cuda.mem_get_info()
    largest = free // (2 * MIB) * 2 * MIB
    x = block(largest)
    assert torch.cuda.mem_get_info()[0] == free - largest < 2 * MIB
    with pytest.raises(torch.cuda.OutOfMemoryError):
        block(32 * MIB)  # more than the free rest of any other segment
    del x
    torch.cuda.empty_cache()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        block(largest + 2 * MIB)


def test_the_text_of_an_out_of_memory_error(fresh, refused):
    with pytest.raises(torch.cuda.OutOfMemoryError) as error:
        block(100 * GIB)
    text = str(error.value)
    assert text.startswith("CUDA out of memory. Tried to allocate 100.00 GiB.")
    total = torch.cuda.mem_get_info()[1]
    assert f"GPU 0 has a total capacity of {total / GIB:.2f} GiB of which" in text
    assert re.search(r"Including non-PyTorch memory, this process has [\d.]+ [MG]iB memory in use\.", text)
    assert "PYTORCH_" in text and torch.cuda.memory_stats()["num_ooms"] >= 1


def test_a_script_goes_on_after_running_out(fresh, refused):
    kept = [block(GIB) for _ in range(20)]
    with pytest.raises(torch.cuda.OutOfMemoryError):
        while True:
            kept.append(block(GIB))
    count = len(kept)
    del kept[0]
    kept.append(block(GIB))
    assert len(kept) == count


def test_a_fraction_of_the_card(fresh, refused):
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(0.25)
    try:
        x = block(int(total * 0.25) - 64 * MIB)
        del x
        torch.cuda.empty_cache()
        with pytest.raises(torch.cuda.OutOfMemoryError, match="GiB allowed"):
            block(int(total * 0.25) + 64 * MIB)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_memory_is_address_space_only(fresh):
    block(20 * GIB)
    gc.collect()
    before = resident()
    x = block(22 * GIB)
    y = x.view(torch.float32).zero_().mul_(2) if x.numel() else x
    del x, y
    torch.cuda.empty_cache()
    large = [torch.randn(64 * MIB, device="cuda") for _ in range(40)]
    assert torch.stack(large[:2]).shape == (2, 64 * MIB)
    assert resident() - before < 64 * MIB


def test_copies_from_the_host_are_kept_within_a_budget(fresh):
    from fathom._doorway.values.values import BYTES

    host = torch.ones(64 * MIB)
    before = resident()
    on_card = [host.cuda() for _ in range(12)]
    assert len(on_card) == 12 and resident() - before < BYTES + 64 * MIB
    del on_card
    host.cuda()
    assert resident() - before < 320 * MIB


def test_snapshot_and_history(fresh):
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        x = block(10 * MIB)
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    entries = [entry for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"]
    assert [entry["size"] for entry in entries] == [10 * MIB]
    assert any("test_memory.py" in frame["filename"] for frame in entries[0]["frames"])
    assert sum(segment["total_size"] for segment in snapshot["segments"]) == torch.cuda.memory_reserved()
    del x


def test_a_private_pool(fresh):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = block(30 * MIB)
    assert x.sum().item() == 0 and torch.cuda.memory_allocated() >= 30 * MIB


def test_pinned_memory():
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and not torch.ones(2).is_pinned()
    y = torch.empty(10, pin_memory=True)
    assert y.is_pinned()
    on_card = x.to("cuda", non_blocking=True)
    assert on_card.tolist() == x.tolist() and not on_card.is_pinned()
    back = torch.empty(1000, pin_memory=True)
    back.copy_(on_card, non_blocking=True)
    torch.cuda.synchronize()
    assert back.equal(x)


def test_nvml_agrees_with_cuda(fresh):
    pynvml = pytest.importorskip("pynvml", reason="this Python has no nvidia-ml-py")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    x = block(100 * MIB)
    free, total = torch.cuda.mem_get_info()
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    assert (memory.total, memory.free, memory.used) == (total, free, total - free)
    assert pynvml.nvmlDeviceGetCount() == 1
    assert pynvml.nvmlDeviceGetName(handle) == torch.cuda.get_device_name()
    assert tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)) == torch.cuda.get_device_capability()
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert [process.pid for process in processes] == [os.getpid()]
    assert re.fullmatch(r"[\d.]+", pynvml.nvmlSystemGetDriverVersion())
    del x
    pynvml.nvmlShutdown()


def test_queries_of_the_sensors():
    pytest.importorskip("pynvml", reason="this Python has no nvidia-ml-py")
    assert 0 <= torch.cuda.utilization() <= 100
    assert 0 <= torch.cuda.memory_usage() <= 100
    assert 0 < torch.cuda.temperature() < 120
    assert torch.cuda.power_draw() > 0 and torch.cuda.clock_rate() > 0
    assert f"process {os.getpid():>10d}" in torch.cuda.list_gpu_processes()
