"""Streams, events, graphs and the profiler."""

import ctypes
import threading

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


@pytest.mark.skipif(not hasattr(torch.cuda.CUDAGraph, "begin_capture_to_if_node"), reason="since torch 2.13")
def test_a_branch_of_a_graph_is_captured():
    """A graph inside of a graph, which a value of the card decides about."""
    decides = torch.zeros((), device="cuda", dtype=torch.bool)
    x = torch.zeros(1 << 20, device="cuda")
    for _ in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(2):
                graph.begin_capture_to_if_node(decides)
                inside = x * 2
                graph.begin_capture_to_if_node(decides)
                x.add_(inside)
                graph.end_capture_to_conditional_node()
                graph.end_capture_to_conditional_node()
            x.add_(1)
        graph.replay()
        graph.reset()
    assert not torch.cuda.is_current_stream_capturing()


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


# -- what a card does not let pass during a capture --------------------------------------------------

READS = {
    "item": lambda x: x.sum().item(),
    "index": lambda x: x[x[0]],
    "mask": lambda x: x[x > 1],
    "nonzero": lambda x: x.nonzero(),
    "stream": lambda x: torch.cuda.current_stream().synchronize(),
    "query": lambda x: torch.cuda.current_stream().query(),
    "device": lambda x: torch.cuda.synchronize(),
}


GETS_OVER_IT = pytest.mark.skipif(
    torch.__version__.startswith("2.6"), reason="the allocator of this torch is of no use after a lost capture"
)


@GETS_OVER_IT
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("read", READS)
def test_whoever_waits_loses_the_capture(mode, read):
    x = torch.arange(4, device="cuda")
    with pytest.raises(RuntimeError, match="due to a previous error during capture") as lost:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
            y = x + 1
            READS[read](x)
    assert "not permitted when stream is capturing" in str(lost.value.__context__)
    assert not torch.cuda.is_current_stream_capturing()
    del y
    torch.cuda.synchronize()


def runtime():
    """`cudaMalloc` and `cudaFree` as a library would call them."""
    cuda = ctypes.CDLL(None)
    address = ctypes.c_void_p()
    code = cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1 << 20))
    if code == 0:
        cuda.cudaFree(address)
    cuda.cudaGetLastError()
    return code


@GETS_OVER_IT
@pytest.mark.parametrize("mode, here, elsewhere", [("global", 900, 900), ("thread_local", 900, 0), ("relaxed", 0, 0)])
def test_raw_allocations_during_a_capture(mode, here, elsewhere):
    for is_here, expected in ((True, here), (False, elsewhere)):
        codes = []
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
                torch.empty(8, device="cuda").zero_()
                if is_here:
                    codes.append(runtime())
                else:
                    thread = threading.Thread(target=lambda: codes.append(runtime()))  # noqa: B023  it ends in this turn
                    thread.start()
                    thread.join()
        except RuntimeError as error:
            assert expected and "due to a previous error during capture" in str(error)
        else:
            assert not expected
        assert codes == [expected]


@GETS_OVER_IT
def test_a_stream_must_come_back_to_its_capture():
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    event.record()
    with pytest.raises(RuntimeError, match="unjoined work"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.empty(8, device="cuda").zero_()
    with pytest.raises(RuntimeError, match="previous error"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.cuda.current_stream().wait_event(event)  # recorded outside


# -- streams that are busy ---------------------------------------------------------------------------

LONG = 10**13  # cycles: hours, for which nobody waits


def test_a_stream_that_sleeps():
    stream, event, after = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        event.record()
    assert not event.query() and not stream.query() and torch.cuda.current_stream().query()
    torch.cuda.current_stream().wait_event(event)
    after.record()
    assert not after.query() and not torch.cuda.current_stream().query()
    after.synchronize()
    assert event.query() and stream.query() and after.query()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(LONG)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 3_600_000


def test_memory_of_a_busy_stream_is_not_reused():
    own, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(own):
        x = torch.empty(5 << 20, device="cuda")
    with torch.cuda.stream(other):
        torch.cuda._sleep(LONG)
    x.record_stream(other)
    address = x.data_ptr()
    del x
    with torch.cuda.stream(own):
        early = torch.empty(5 << 20, device="cuda")
        assert early.data_ptr() != address
        other.synchronize()
        assert torch.empty(5 << 20, device="cuda").data_ptr() == address


def test_pinned_memory_of_a_copy_is_not_reused():
    torch.cuda.synchronize()
    pinned = torch.ones(1 << 14, pin_memory=True)
    address, on_card = pinned.data_ptr(), torch.zeros(1 << 14, device="cuda")
    torch.cuda._sleep(LONG)
    on_card.copy_(pinned, non_blocking=True)
    del pinned
    other = torch.ones(1 << 14, pin_memory=True)
    assert other.data_ptr() != address
    torch.cuda.synchronize()
    assert torch.ones(1 << 14, pin_memory=True).data_ptr() == address
    assert on_card.sum().item() == 1 << 14


def test_a_graph_reuses_memory_when_all_streams_are_back():
    try:
        torch.cuda.memory._set_allocator_settings("graph_capture_record_stream_reuse:True")
    except (RuntimeError, ValueError):
        pytest.skip("this torch has no such setting")
    try:
        sides = [torch.cuda.Stream() for _ in range(3)]
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            main = torch.cuda.current_stream()
            sinks = [torch.empty(8, device="cuda") for _ in range(2)]
            x = torch.ones(8, device="cuda")
            address = x.data_ptr()
            for side in sides:
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    x.add(1.0)
                    x.record_stream(side)
            del x
            main.wait_stream(sides[0])
            sides[1].wait_stream(sides[2])
            sinks[0].fill_(1.0)
            early = torch.empty(8, device="cuda")
            assert early.data_ptr() != address  # two streams are still away
            main.wait_stream(sides[1])
            sinks[1].fill_(1.0)
            assert torch.empty(8, device="cuda").data_ptr() == address
    finally:
        torch.cuda.memory._set_allocator_settings("graph_capture_record_stream_reuse:False")
