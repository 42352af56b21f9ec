"""Small payloads of every collective, printed as JSON; what they must be follows from rank and world size alone."""

import json
import os

import torch
import torch.distributed as dist


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    number = lambda *values: torch.tensor(values, device="cuda")  # noqa: E731
    empty = lambda count: torch.zeros(count, dtype=torch.long, device="cuda")  # noqa: E731
    seen = {}

    def note(name, *tensors):
        seen[name] = [tensor.tolist() for tensor in tensors]

    parts = [empty(2) for _ in range(size)]
    dist.all_gather(parts, number(7, 8))
    note("all_gather", *parts)
    whole = empty(2 * size)
    dist.all_gather_into_tensor(whole, number(7, 8))
    note("all_gather_into_tensor", whole)
    for name in ("SUM", "AVG", "MAX"):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            value = number(3).to(dtype)
            dist.all_reduce(value, op=getattr(dist.ReduceOp, name))
            note(f"{name} {dtype}", value)
    value = number(3)
    dist.all_reduce(value, async_op=True).wait()
    note("async", value)
    with dist._coalescing_manager(device=torch.device("cuda"), async_ops=True) as work:
        values = [number(1), number(2, 3)]
        for value in values:
            dist.all_reduce(value)
    work.wait()
    note("coalesced", *values)
    part = empty(1)
    dist.reduce_scatter_tensor(part, torch.arange(size, device="cuda"))
    note("reduce_scatter", part)
    whole = empty(size)
    dist.all_to_all_single(whole, torch.arange(size, device="cuda") + 10)
    note("all_to_all_single", whole)
    parts = [empty(1) for _ in range(size)]
    dist.all_to_all(parts, [number(5 + index) for index in range(size)])
    note("all_to_all", *parts)
    value = empty(3)
    operations = [
        dist.P2POp(dist.isend, number(1, 2, 3), (rank + 1) % size),
        dist.P2POp(dist.irecv, value, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    note("ring", value)
    parts = [empty(1) for _ in range(size)] if rank == 0 else None
    dist.gather(number(9), parts, dst=0)
    note("gather", *parts or [])
    value = empty(1)
    dist.scatter(value, [number(20 + index) for index in range(size)] if rank == 0 else None, src=0)
    note("scatter", value)
    value = number(42 if rank == 0 else 0)
    dist.broadcast(value, 0)
    note("broadcast", value)
    objects = [None] * size
    dist.all_gather_object(objects, {"step": 3})
    seen["all_gather_object"] = objects
    objects = ["run", 17] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    seen["broadcast_object_list"] = objects
    on_cpu = dist.new_group(backend="gloo")
    value = torch.ones(2)
    dist.all_reduce(value, group=on_cpu)
    note("gloo", value)
    dist.monitored_barrier(on_cpu)
    half = dist.new_group(range(0, size, 2))
    if rank % 2 == 0:
        value = number(1)
        dist.all_reduce(value, group=half)
        note("subgroup", value)
    store = dist.TCPStore("127.0.0.1", 29501, size, rank == 0)
    store.set(f"address/{rank}", "here")
    seen["store"] = store.get(f"address/{(rank + 1) % size}").decode()
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
