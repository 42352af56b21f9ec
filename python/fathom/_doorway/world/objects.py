"""Python objects and small numbers that one rank gives to others: they travel as messages."""

import io
import pickle

import torch
from torch import serialization
from torch.distributed import distributed_c10d as c10d

from .patch import replace
from .unanswered import Unanswered

# Sizes, flags and indices are whole numbers, and few; weights are neither.
SMALL_NUMBERS = 4096


def install(world, mailbox):
    def members(group):
        return c10d.get_process_group_ranks(group or c10d._get_default_group())

    def name_of(group):
        return c10d._get_process_group_name(group or c10d._get_default_group())

    def root(src, group, group_src, default=0):
        """The sender's rank in the world."""
        if group_src is not None:
            return members(group)[group_src]
        return default if src is None else src

    def broadcast_object_list(inner):
        def call(object_list, src=None, group=None, device=None, group_src=None):
            sender = root(src, group, group_src)
            message = mailbox.next("broadcast_object_list", name_of(group), sender)
            if sender == world.rank:
                mailbox.leave(message, dump(object_list))
            else:
                object_list[:] = load(mailbox.demand(sender, message, f"broadcast_object_list(src={sender})"))

        return call

    def scatter_object_list(inner):
        def call(output, inputs=None, src=None, group=None, group_src=None):
            sender = root(src, group, group_src)
            message = mailbox.next("scatter_object_list", name_of(group), sender)
            if sender == world.rank:
                mailbox.leave(message, dump(inputs))
            else:
                inputs = load(mailbox.demand(sender, message, f"scatter_object_list(src={sender})"))
            output[0] = inputs[members(group).index(world.rank)]

        return call

    def send_object_list(inner):
        def call(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
            receiver = root(dst, group, group_dst)
            mailbox.leave(mailbox.next("send_object_list", name_of(group), world.rank, receiver), dump(object_list))

        return call

    def recv_object_list(inner):
        def call(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
            if src is None and group_src is None:
                raise Unanswered("recv_object_list from any rank: no other rank runs beside this one")
            sender = root(src, group, group_src)
            message = mailbox.next("send_object_list", name_of(group), sender, world.rank)
            object_list[:] = load(mailbox.demand(sender, message, f"recv_object_list(src={sender})"))
            return sender

        return call

    def broadcast(inner):
        def call(tensor, src=None, group=None, async_op=False, group_src=None):
            work = inner(tensor, src, group, async_op, *([group_src] if group_src is not None else []))
            if is_few_numbers(tensor):
                sender = root(src, group, group_src)
                message = mailbox.next("broadcast", name_of(group), sender)
                if sender == world.rank:
                    mailbox.leave(message, dump(tensor.detach().cpu()))
                else:
                    tensor.copy_(load(mailbox.demand(sender, message, f"broadcast(src={sender})")))
            return work

        return call

    def gather(inner):
        def call(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
            work = inner(tensor, gather_list, dst, group, async_op, *([group_dst] if group_dst is not None else []))
            if gather_list and tensor.numel() <= SMALL_NUMBERS:
                for part in gather_list:
                    part.copy_(tensor)
            return work

        return call

    def scatter(inner):
        def call(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
            work = inner(tensor, scatter_list, src, group, async_op, *([group_src] if group_src is not None else []))
            if is_few_numbers(tensor):
                sender = root(src, group, group_src)
                message = mailbox.next("scatter", name_of(group), sender)
                if sender == world.rank:
                    mailbox.leave(message, dump([part.detach().cpu() for part in scatter_list]))
                else:
                    parts = load(mailbox.demand(sender, message, f"scatter(src={sender})"))
                    tensor.copy_(parts[members(group).index(world.rank)])
            return work

        return call

    def sends(inner):
        def call(tensor, dst=None, group=None, tag=0, group_dst=None):
            if is_few_numbers(tensor) and not mailbox.is_in_batch:
                message = mailbox.next("send", name_of(group), world.rank, root(dst, group, group_dst), tag)
                mailbox.leave(message, dump(tensor.detach().cpu()))
            return inner(tensor, dst, group, tag, *([group_dst] if group_dst is not None else []))

        return call

    def receives(inner):
        def call(tensor, src=None, group=None, tag=0, group_src=None):
            if src is None and group_src is None:
                raise Unanswered(f"{inner.__name__} from any rank: no other rank runs beside this one")
            result = inner(tensor, src, group, tag, *([group_src] if group_src is not None else []))
            if is_few_numbers(tensor) and not mailbox.is_in_batch:
                sender = root(src, group, group_src)
                message = mailbox.next("send", name_of(group), sender, world.rank, tag)
                # Who does not wait now may never look: pipelines warm their connections up like that.
                is_waiting = inner.__name__ == "recv"
                content = mailbox.demand(sender, message, f"recv(src={sender})") if is_waiting else mailbox.find(sender, message)
                if content is not None:
                    tensor.copy_(load(content))
            return result

        return call

    def batch_isend_irecv(inner):
        """Messages that go together are answered together, by the phantom: as in a ring."""

        def call(operations):
            mailbox.is_in_batch = True
            try:
                return inner(operations)
            finally:
                mailbox.is_in_batch = False

        return call

    for name in ("send", "isend"):
        replace(name, sends)
    for name in ("recv", "irecv"):
        replace(name, receives)
    objects = (broadcast_object_list, scatter_object_list, send_object_list, recv_object_list)
    for make in (batch_isend_irecv, gather, scatter, *objects, broadcast):
        replace(make.__name__, make)


def is_few_numbers(tensor):
    return (
        type(tensor) is torch.Tensor
        and not tensor.is_floating_point()
        and not tensor.is_complex()
        and tensor.numel() <= SMALL_NUMBERS
    )


def dump(value):
    buffer = io.BytesIO()
    serialization.save(value, buffer, pickle_module=pickle)
    return buffer.getvalue()


def load(content):
    """Written by another rank of the same script."""
    return serialization.load(io.BytesIO(content), map_location="cpu", weights_only=False)
