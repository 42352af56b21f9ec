"""Streams, events, graphs and the profiler."""

import pytest
import torch


def test_streams_wait_for_each_other():
    side = torch.cuda.Stream()
    assert side != torch.cuda.current_stream()
    x = torch.arange(5.0, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        y = x * 2
    y.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(side)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0] and side.query()
    side.synchronize()


def test_a_block_used_by_another_stream_is_not_reused_at_once():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.empty(1 << 22, device="cuda")
    address = x.data_ptr()
    del x
    y = torch.empty(1 << 22, device="cuda")
    assert y.data_ptr() != address  # the pools of two streams are apart
    with torch.cuda.stream(side):
        assert torch.empty(1 << 22, device="cuda").data_ptr() == address


def test_priorities_and_external_streams():
    low, high = torch.cuda.Stream(priority=0), torch.cuda.Stream(priority=-1)
    assert (low.priority, high.priority) == (0, -1)
    with torch.cuda.stream(torch.cuda.ExternalStream(high.cuda_stream)):
        assert torch.ones(2, device="cuda").sum().item() == 2


def test_events_measure_time():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(10, device="cuda") * 2
    end.record()
    end.synchronize()
    assert end.query() and 0 <= start.elapsed_time(end) < 60_000
    event = torch.cuda.Stream().record_event()
    torch.cuda.current_stream().wait_event(event)


def test_a_graph_is_captured_and_replayed():
    weight = torch.randn(512, 512, device="cuda", requires_grad=True)
    given = torch.zeros(64, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            (given @ weight).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    weight.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        out = given @ weight
        out.sum().backward()
    assert not torch.cuda.is_current_stream_capturing()
    given.copy_(torch.ones(64, 512))
    graph.replay()
    assert out.shape == (64, 512) and weight.grad.shape == (512, 512)
    assert graph.pool() is not None
    graph.reset()


def test_callables_are_graphed():
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128)).cuda()
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(32, 128, device="cuda", requires_grad=True),))
    for _ in range(3):
        graphed(torch.randn(32, 128, device="cuda", requires_grad=True)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_profiler_runs():
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as profiler:
        torch.randn(256, 256, device="cuda").matmul(torch.randn(256, 256, device="cuda")).sum().item()
    assert "aten::mm" in profiler.key_averages().table(row_limit=50)


def test_ranges_and_synchronisation():
    with torch.cuda.nvtx.range("a range"):
        torch.cuda.nvtx.mark("a mark")
        torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            torch.ones(1, device="cuda").item()
    finally:
        torch.cuda.set_sync_debug_mode("default")
