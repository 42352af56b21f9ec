"""Whole numbers that are counted up on the card, which has a short way of its own."""

import torch


def test_counts_are_those_of_the_cpu():
    def counted(device):
        count, several = torch.zeros((), dtype=torch.long, device=device), torch.zeros(4, dtype=torch.long, device=device)
        count.add_(1)
        count.add_(-(1 << 40))
        count.add_(3, alpha=2)
        count.add_(True)
        count.add_(torch.tensor(5, device=device))
        several[2].add_(7)
        several.add_(1)
        small = torch.zeros((), dtype=torch.int32, device=device).add_(9)
        return count.item(), several.tolist(), small.item(), count.add_(2) is count, count.item()

    assert counted("cuda") == counted("cpu")


def test_norm_layers_count_their_batches():
    layer = torch.nn.BatchNorm2d(8).cuda()
    for _ in range(3):
        layer(torch.randn(64, 8, 64, 64, device="cuda"))
    assert layer.num_batches_tracked.item() == 3
