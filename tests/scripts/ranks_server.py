"""A parameter server: rank 0 waits for what the others compute, and they wait for its answer. ranks_server.py WAY"""

import os
import sys

import torch
import torch.distributed as dist


def objects(rank):
    box = [None]
    if rank == 0:
        dist.recv_object_list(box, src=1)
        dist.send_object_list(["weights"], dst=1)
    else:
        dist.recv_object_list(box, src=0)
        dist.send_object_list(["gradients"], dst=0)


def store(rank):
    dist.distributed_c10d._get_default_store()
    dist.TCPStore("127.0.0.1", 29501, 2, rank == 0).get("ready")


def rpc(rank):
    torch.distributed.rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    globals()[sys.argv[1]](dist.get_rank())
