"""Small tensors hold what a GPU would hold: the same code on the CPU and on the card gives the same values."""

import math

import pytest
import torch
from fathom._doorway import border, functions
from fathom._doorway.values import evaluate, values
from fathom._doorway.values.stand_ins import LARGE as MANY
from torch.nn import functional as F


def numbers(*shape, dtype=torch.float32, seed=0):
    """Random numbers made on the CPU, the same for both devices."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def integers(*shape, high=10, seed=0):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def positive_definite(count=4):
    matrix = numbers(count, count)
    return matrix @ matrix.T + count * torch.eye(count)


def pose():
    """A camera: a rotation about z and a translation."""
    cosine, sine = math.cos(0.3), math.sin(0.3)
    return torch.tensor([[cosine, -sine, 0, 1.0], [sine, cosine, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]])


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def cases(**functions):
    CASES.update(functions)


# Each gets `to`, which brings a tensor to the device under test; what it returns is compared.

cases(
    arange=lambda to: torch.arange(10, device=to.device),
    arange_sum=lambda to: torch.arange(10, device=to.device).sum(),
    linspace=lambda to: torch.linspace(0, 1, 7, device=to.device),
    full=lambda to: torch.full((3, 4), 2.5, device=to.device),
    eye=lambda to: torch.eye(5, device=to.device),
    tril_indices=lambda to: torch.tril_indices(4, 4, device=to.device),
    zeros_and_ones=lambda to: [torch.zeros(3, device=to.device), torch.ones(2, 2, device=to.device)],
    from_list=lambda to: torch.tensor([[1, 2], [3, 4]], device=to.device),
    empty_like_then_fill=lambda to: torch.empty_like(to(numbers(5))).fill_(3),
    # arithmetic
    add=lambda to: to(numbers(3, 4)) + to(numbers(4, seed=1)),
    divide=lambda to: to(integers(9)) / to(integers(9, seed=1) + 1),
    floor_divide=lambda to: to(integers(9) - 5) // 3,
    remainder=lambda to: to(integers(9) - 5) % 3,
    power=lambda to: to(numbers(9)).abs() ** 1.5,
    matmul=lambda to: to(numbers(3, 4)) @ to(numbers(4, 5)),
    batched_matmul=lambda to: torch.bmm(to(numbers(2, 3, 4)), to(numbers(2, 4, 5))),
    addmm=lambda to: torch.addmm(to(numbers(5)), to(numbers(3, 4)), to(numbers(4, 5))),
    einsum=lambda to: torch.einsum("bij,bkj->bik", to(numbers(2, 3, 4)), to(numbers(2, 5, 4))),
    dot=lambda to: to(numbers(9)).dot(to(numbers(9, seed=1))),
    outer=lambda to: torch.outer(to(numbers(3)), to(numbers(4))),
    clamp=lambda to: to(numbers(20)).clamp(-0.5, 0.5),
    trigonometry=lambda to: torch.atan2(to(numbers(9)).sin(), to(numbers(9)).cos()),
    special_functions=lambda to: [torch.erf(to(numbers(9))), torch.lgamma(to(numbers(9)).abs() + 1)],
    scalar_left=lambda to: 1 - to(numbers(4)),
    maximum=lambda to: torch.maximum(to(numbers(9)), to(numbers(9, seed=1))),
    lerp=lambda to: torch.lerp(to(numbers(4)), to(numbers(4, seed=1)), 0.3),
    bitwise=lambda to: (to(integers(9)) & 6) ^ (to(integers(9)) << 1) | ~to(integers(9)),
    device_scalar_and_cpu_scalar=lambda to: to(numbers(4)) * torch.tensor(2.0),
    # reductions
    mean_over_dim=lambda to: to(numbers(3, 4)).mean(dim=1, keepdim=True),
    std=lambda to: to(numbers(50)).std(),
    norm=lambda to: to(numbers(3, 4)).norm(dim=1),
    prod=lambda to: to(numbers(6)).prod(),
    any_and_all=lambda to: [(to(integers(9)) > 8).any(), (to(integers(9)) >= 0).all()],
    max_with_index=lambda to: to(numbers(3, 4)).max(dim=1),
    argmax=lambda to: to(numbers(3, 4)).argmax(dim=1),
    amin=lambda to: to(numbers(3, 4)).amin(dim=(0, 1)),
    logsumexp=lambda to: to(numbers(3, 4)).logsumexp(dim=1),
    median=lambda to: to(numbers(9)).median(),
    quantile=lambda to: to(numbers(9)).quantile(0.3),
    count_nonzero=lambda to: (to(integers(20)) > 4).count_nonzero(),
    histogram=lambda to: torch.histc(to(numbers(50)), bins=5, min=-2, max=2),
    bincount=lambda to: torch.bincount(to(integers(30))),
    # order
    sort=lambda to: to(numbers(3, 9)).sort(dim=1, descending=True),
    stable_argsort=lambda to: to(integers(30, high=4)).argsort(stable=True),
    topk=lambda to: to(numbers(3, 9)).topk(4, dim=1),
    kthvalue=lambda to: to(numbers(9)).kthvalue(3),
    cumsum=lambda to: to(numbers(3, 9)).cumsum(dim=1),
    cumprod=lambda to: to(numbers(9)).cumprod(dim=0),
    cummax=lambda to: to(numbers(9)).cummax(dim=0),
    searchsorted=lambda to: torch.searchsorted(to(torch.arange(0, 20, 2)), to(integers(9, high=20))),
    bucketize=lambda to: torch.bucketize(to(numbers(9)), to(torch.tensor([-1.0, 0, 1]))),
    flip_and_roll=lambda to: to(numbers(3, 4)).flip(0).roll(1, dims=1),
    diff=lambda to: to(numbers(9)).diff(),
    isin=lambda to: torch.isin(to(integers(20)), to(torch.tensor([1, 5]))),
    # sizes that depend on values
    nonzero=lambda to: (to(integers(4, 5)) > 5).nonzero(),
    nonzero_as_tuple=lambda to: (to(integers(4, 5)) > 5).nonzero(as_tuple=True),
    argwhere=lambda to: torch.argwhere(to(integers(9)) > 5),
    where_one_argument=lambda to: torch.where(to(integers(9)) > 5),
    unique=lambda to: to(integers(40)).unique(return_inverse=True, return_counts=True),
    unique_over_dim=lambda to: to(integers(40, 2, high=3)).unique(dim=0),
    unique_consecutive=lambda to: to(integers(40, high=2)).unique_consecutive(),
    masked_select=lambda to: to(numbers(20)).masked_select(to(integers(20)) > 4),
    boolean_mask=lambda to: to(numbers(4, 5))[to(integers(4, 5)) > 4],
    boolean_mask_of_rows=lambda to: to(numbers(4, 5))[to(torch.tensor([True, False, True, True]))],
    boolean_mask_and_index=lambda to: to(numbers(4, 5))[to(torch.tensor([True, False, True, True])), to(integers(3, high=5))],
    empty_mask=lambda to: to(numbers(4, 5))[to(torch.zeros(4, dtype=torch.bool))],
    cpu_mask=lambda to: to(numbers(4, 5))[torch.tensor([True, False, True, True])],
    repeat_interleave=lambda to: to(numbers(4)).repeat_interleave(to(torch.tensor([1, 0, 2, 3]))),
    combinations=lambda to: torch.combinations(to(torch.arange(5))),
    # indexing
    where=lambda to: torch.where(to(numbers(9)) > 0, to(numbers(9)), 0.0),
    gather=lambda to: to(numbers(3, 9)).gather(1, to(integers(3, 4, high=9))),
    scatter=lambda to: torch.zeros(3, 9, device=to.device).scatter(1, to(integers(3, 4, high=9)), 1.0),
    scatter_add=lambda to: torch.zeros(5, device=to.device).scatter_add_(0, to(integers(20, high=5)), to(numbers(20))),
    scatter_reduce=lambda to: torch.zeros(5, device=to.device).scatter_reduce(0, to(integers(20, high=5)), to(numbers(20)), "amax"),
    index_select=lambda to: to(numbers(9, 2)).index_select(0, to(integers(4, high=9))),
    index_with_list=lambda to: to(numbers(9, 2))[[3, 1, 4]],
    index_with_tensors=lambda to: to(numbers(3, 9))[to(torch.tensor([0, 2])), to(torch.tensor([4, 5]))],
    index_with_ellipsis=lambda to: to(numbers(2, 3, 9))[..., 1:7:2],
    take_along_dim=lambda to: torch.take_along_dim(to(numbers(3, 9)), to(numbers(3, 9)).argsort(dim=1), dim=1),
    embedding=lambda to: F.embedding(to(integers(3, 4)), to(numbers(10, 6))),
    one_hot=lambda to: F.one_hot(to(integers(9))),
    meshgrid=lambda to: torch.meshgrid(torch.arange(3, device=to.device), torch.arange(4, device=to.device), indexing="ij"),
    cartesian_product=lambda to: torch.cartesian_prod(to(torch.arange(3)), to(torch.arange(2))),
    # shapes and views
    cat_and_stack=lambda to: torch.stack([torch.cat([to(numbers(3)), to(numbers(2))])] * 2),
    split_and_chunk=lambda to: [*to(numbers(9)).split([2, 3, 4]), *to(numbers(9)).chunk(2)],
    transpose=lambda to: to(numbers(3, 4)).T.contiguous(),
    permute_and_reshape=lambda to: to(numbers(2, 3, 4)).permute(2, 0, 1).reshape(4, 6),
    expand=lambda to: to(numbers(3, 1)).expand(3, 4) + 1,
    as_strided=lambda to: to(numbers(10)).as_strided((3, 4), (2, 1)) * 2,
    unfold=lambda to: to(numbers(10)).unfold(0, 4, 2),
    diagonal=lambda to: to(numbers(4, 4)).diagonal() + 1,
    triu=lambda to: to(numbers(4, 4)).triu(1),
    pad=lambda to: F.pad(to(numbers(2, 3)), (1, 2), value=9.0),
    pad_reflect=lambda to: F.pad(to(numbers(1, 2, 5)), (1, 2), mode="reflect"),
    repeat_and_tile=lambda to: to(numbers(2, 3)).repeat(2, 2),
    channels_last=lambda to: to(numbers(2, 3, 4, 4)).to(memory_format=torch.channels_last) * 2,
    view_as_other_dtype=lambda to: to(numbers(4)).view(torch.int32),
    block_diagonal=lambda to: torch.block_diag(to(numbers(2, 2)), to(numbers(3, 1))),
    # types
    half=lambda to: to(numbers(9)).half() * 3 + 1,
    bfloat16=lambda to: to(numbers(9)).bfloat16().softmax(0),
    float64=lambda to: to(numbers(9)).double().exp(),
    complex_numbers=lambda to: torch.complex(to(numbers(9)), to(numbers(9, seed=1))) * (2 - 1j),
    complex_absolute=lambda to: torch.complex(to(numbers(9)), to(numbers(9, seed=1))).abs(),
    complex_conjugate=lambda to: torch.complex(to(numbers(9)), to(numbers(9, seed=1))).conj() + 1,
    complex_as_real=lambda to: torch.view_as_real(torch.polar(to(numbers(9)).abs(), to(numbers(9)))),
    booleans=lambda to: (to(numbers(9)) > 0) ^ (to(numbers(9, seed=1)) > 0),
    int8=lambda to: to(integers(9)).to(torch.int8) * 20,
    uint8=lambda to: to(integers(9)).to(torch.uint8) - 5,
    type_promotion=lambda to: to(integers(9)) * 0.5,
    autocast=lambda to: torch.autocast(to.device, dtype=torch.bfloat16)(torch.mm)(to(numbers(3, 4)), to(numbers(4, 5))),
    # linear algebra
    inverse_of_a_pose=lambda to: torch.linalg.inv(to(pose())),
    inverse_batched=lambda to: torch.linalg.inv(to(torch.stack([pose(), 2 * pose()]))),
    determinant=lambda to: torch.linalg.det(to(positive_definite())),
    slogdet=lambda to: torch.linalg.slogdet(to(positive_definite())),
    solve=lambda to: torch.linalg.solve(to(positive_definite()), to(numbers(4, 2))),
    triangular_solve=lambda to: torch.linalg.solve_triangular(to(positive_definite()).tril(), to(numbers(4, 2)), upper=False),
    cholesky=lambda to: torch.linalg.cholesky(to(positive_definite())),
    cholesky_solve=lambda to: torch.cholesky_solve(to(numbers(4, 2)), torch.linalg.cholesky(to(positive_definite()))),
    singular_values=lambda to: torch.linalg.svdvals(to(numbers(5, 3))),
    svd_rebuilt=lambda to: (lambda u, s, v: u @ torch.diag(s) @ v)(*torch.linalg.svd(to(numbers(5, 3)), full_matrices=False)),
    symmetric_eigenvalues=lambda to: torch.linalg.eigvalsh(to(positive_definite())),
    qr_rebuilt=lambda to: (lambda q, r: q @ r)(*torch.linalg.qr(to(numbers(5, 3)))),
    least_squares=lambda to: torch.linalg.lstsq(to(numbers(6, 3)), to(numbers(6, 2, seed=1))).solution,
    pseudo_inverse=lambda to: torch.linalg.pinv(to(numbers(5, 3))),
    matrix_power=lambda to: torch.linalg.matrix_power(to(pose()), 3),
    matrix_exponential=lambda to: torch.linalg.matrix_exp(to(numbers(3, 3))),
    cross_product=lambda to: torch.linalg.cross(to(numbers(4, 3)), to(numbers(4, 3, seed=1))),
    distances=lambda to: torch.cdist(to(numbers(4, 3)), to(numbers(5, 3, seed=1))),
    fft=lambda to: torch.fft.fft(to(numbers(16))),
    fft_real=lambda to: torch.fft.rfft(to(numbers(3, 16))).abs(),
    fft_there_and_back=lambda to: torch.fft.ifft2(torch.fft.fft2(to(numbers(4, 4)))).real,
    # layers
    linear=lambda to: F.linear(to(numbers(3, 4)), to(numbers(5, 4)), to(numbers(5))),
    conv2d=lambda to: F.conv2d(to(numbers(1, 2, 6, 6)), to(numbers(3, 2, 3, 3)), padding=1),
    layer_norm=lambda to: F.layer_norm(to(numbers(3, 8)), (8,)),
    group_norm=lambda to: F.group_norm(to(numbers(2, 4, 3)), 2),
    batch_norm_training=lambda to: F.batch_norm(to(numbers(4, 3)), None, None, training=True),
    batch_norm_evaluation=lambda to: F.batch_norm(to(numbers(4, 3)), to(numbers(3)), to(numbers(3)).abs()),
    softmax=lambda to: to(numbers(3, 8)).softmax(dim=1),
    gelu_and_silu=lambda to: F.gelu(F.silu(to(numbers(9)))),
    pooling=lambda to: F.max_pool2d(F.avg_pool2d(to(numbers(1, 2, 8, 8)), 2), 2),
    interpolation=lambda to: F.interpolate(to(numbers(1, 2, 4, 4)), scale_factor=2, mode="bilinear"),
    grid_sample=lambda to: F.grid_sample(to(numbers(1, 2, 4, 4)), to(numbers(1, 3, 3, 2)).tanh(), align_corners=False),
    attention=lambda to: F.scaled_dot_product_attention(*(to(numbers(1, 2, 4, 8, seed=seed)) for seed in range(3))),
    cross_entropy=lambda to: F.cross_entropy(to(numbers(5, 10)), to(integers(5))),
    mse_loss=lambda to: F.mse_loss(to(numbers(9)), to(numbers(9, seed=1))),
    dropout_in_evaluation=lambda to: F.dropout(to(numbers(9)), training=False),
    embedding_bag=lambda to: F.embedding_bag(to(integers(3, 4)), to(numbers(10, 6)), mode="sum"),
    cosine_similarity=lambda to: F.cosine_similarity(to(numbers(3, 4)), to(numbers(3, 4, seed=1))),
    # lists of tensors
    foreach_add=lambda to: torch._foreach_add([to(numbers(3)), to(numbers(4))], [to(numbers(3, seed=1)), to(numbers(4, seed=1))]),
    foreach_norm=lambda to: torch._foreach_norm([to(numbers(3)), to(numbers(4))]),
    # sparse
    sparse_coo_product=lambda to: torch.sparse.mm(to(numbers(4, 4)).relu().to_sparse(), to(numbers(4, 2))),
    sparse_there_and_back=lambda to: to(numbers(4, 4)).relu().to_sparse().to_dense(),
    sparse_coalesce=lambda to: torch.sparse_coo_tensor(to(torch.tensor([[0, 0, 2]])), to(torch.tensor([1.0, 2, 3])), (4,)).coalesce().to_dense(),  # noqa: E501
)  # fmt: skip


@case
def in_place_arithmetic(to):
    x = to(numbers(3, 4))
    x += 1
    x[0] *= 2
    x[:, 1].zero_()
    x[1, 2] = 5.0
    x.clamp_(min=0).sqrt_()
    return x


@case
def index_put(to):
    x = to(numbers(5))
    x[to(torch.tensor([0, 3]))] = to(torch.tensor([7.0, 8.0]))
    x.index_put_((to(torch.tensor([1, 1])),), to(torch.tensor([1.0, 2.0])), accumulate=True)
    return x


@case
def assign_through_a_mask(to):
    x = to(numbers(4, 5))
    x[x < 0] = 0
    x[to(torch.tensor([True, False, False, True]))] = 9
    return x


@case
def masked_fill_and_scatter(to):
    x = to(numbers(9)).masked_fill(to(integers(9)) > 4, -1.0)
    return x.masked_scatter(x < 0, to(torch.arange(9.0)))


@case
def writes_through_views(to):
    x = to(numbers(4, 4))
    x.t()[0].fill_(3)
    x.view(-1)[5:7] = 4
    x.diagonal().add_(1)
    x.narrow(0, 1, 2).mul_(2)
    return x


@case
def copies_between_layouts(to):
    x = to(numbers(3, 4))
    y = torch.empty(4, 3, device=to.device).t()
    y.copy_(x)
    return y.clone(memory_format=torch.contiguous_format), y.to(torch.float64)


@case
def index_add_and_copy(to):
    x = torch.zeros(5, 2, device=to.device)
    x.index_add_(0, to(torch.tensor([0, 4, 0])), to(numbers(3, 2)))
    x.index_copy_(0, to(torch.tensor([1])), to(numbers(1, 2)))
    return x.index_fill(0, to(torch.tensor([2])), -1)


@case
def out_argument(to):
    out = torch.empty(3, device=to.device)
    torch.add(to(numbers(3)), 1, out=out)
    return out


@case
def out_argument_that_grows(to):
    out = torch.empty(0, device=to.device)
    torch.mul(to(numbers(3, 4)), 2, out=out)
    return out


@case
def autograd_of_a_small_network(to):
    first, second = to(numbers(4, 3)).requires_grad_(), to(numbers(3, 2)).requires_grad_()
    loss = ((to(numbers(5, 4)) @ first).tanh() @ second).softmax(1).log().mean()
    loss.backward()
    return loss, first.grad, second.grad


@case
def autograd_through_indexing(to):
    x = to(numbers(4, 5)).requires_grad_()
    (x[x > 0].sum() + x.max(dim=1).values.sum() + x.sort(dim=0).values[0].prod()).backward()
    return x.grad


@case
def autograd_twice(to):
    x = to(numbers(5)).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first, second


@case
def adam_steps(to):
    weight = to(numbers(3, 4)).requires_grad_()
    optimizer = torch.optim.Adam([weight], lr=0.1, foreach=False)
    for _ in range(3):
        optimizer.zero_grad()
        (weight**2).sum().backward()
        optimizer.step()
    return weight, optimizer.state[weight]["exp_avg_sq"]


@case
def adam_foreach_steps(to):
    weights = [to(numbers(3, 4)).requires_grad_(), to(numbers(5)).requires_grad_()]
    optimizer = torch.optim.Adam(weights, lr=0.1, foreach=True)
    for _ in range(3):
        optimizer.zero_grad()
        sum((weight**2).sum() for weight in weights).backward()
        optimizer.step()
    return weights


@case
def sgd_and_a_clipped_norm(to):
    weights = [to(numbers(3, 4)).requires_grad_(), to(numbers(5)).requires_grad_()]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True)
    total = torch.tensor(0.0)
    for _ in range(3):
        optimizer.zero_grad()
        sum((weight**2).sum() for weight in weights).backward()
        total = torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
    return weights, total


@case
def control_flow(to):
    x, count = to(torch.tensor(1.0)), 0
    while x < 100:
        x = x * 3
        count += 1
    return torch.tensor(count), x


@case
def beam_search_bookkeeping(to):
    scores, tokens = torch.zeros(3, 1, device=to.device), torch.zeros(3, 0, dtype=torch.long, device=to.device)
    for step in range(4):
        total = (scores + to(numbers(3, 10, seed=step)).log_softmax(1)).view(-1)
        scores, index = total.topk(3)
        scores = scores[:, None]
        tokens = torch.cat([tokens[index // 10], (index % 10)[:, None]], dim=1)
    return tokens, scores


@case
def box_areas_and_overlaps(to):
    corner = to(numbers(6, 2)).abs()
    boxes = torch.cat([corner, corner + to(numbers(6, 2, seed=1)).abs()], dim=1)
    low = torch.max(boxes[:, None, :2], boxes[:, :2])
    high = torch.min(boxes[:, None, 2:], boxes[:, 2:])
    overlap = (high - low).clamp(min=0).prod(2)
    return overlap, (overlap > 0.1).nonzero()


@case
def running_statistics(to):
    norm = torch.nn.BatchNorm1d(3).to(to.device)
    norm(to(numbers(8, 3)))
    return norm.running_mean, norm.running_var, norm.num_batches_tracked


class To:
    def __init__(self, device):
        self.device = device

    def __call__(self, tensor):
        return tensor.to(self.device)


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [tensor for item in result for tensor in flat(item)]


@pytest.mark.parametrize("name", list(CASES))
def test_same_values_as_on_the_cpu(name):
    expected, found = flat(CASES[name](To("cpu"))), flat(CASES[name](To("cuda")))
    assert len(expected) == len(found)
    for on_cpu, on_card in zip(expected, found, strict=True):
        if not name.startswith("control_flow"):
            assert on_card.is_cuda
        assert on_card.shape == on_cpu.shape
        torch.testing.assert_close(on_card.detach().cpu(), on_cpu.detach(), rtol=1e-5, atol=1e-6)


def test_the_sum_of_a_range():
    assert torch.arange(10, device="cuda").sum().item() == 45


def test_python_reads_values():
    x = torch.tensor([[1.5, -2.0], [0.0, 4.0]], device="cuda")
    assert x.tolist() == [[1.5, -2.0], [0.0, 4.0]]
    assert x.cpu().numpy().sum() == 3.5
    assert torch.from_numpy(x.cpu().numpy()).cuda().equal(x)
    assert (float(x[0, 0]), int(x[1, 1]), bool(x[1, 0])) == (1.5, 4, False)
    assert repr(x) == "tensor([[ 1.5000, -2.0000],\n        [ 0.0000,  4.0000]], device='cuda:0')"
    assert [int(row[0] > 0) for row in x] == [1, 0]
    assert x.allclose(x.clone()) and not x.equal(x + 1) and x.isfinite().all()


def test_random_numbers_are_plausible():
    order = torch.randperm(50, device="cuda")
    assert order.sort().values.tolist() == list(range(50)) and order.tolist() != list(range(50))
    drawn = torch.randint(3, 9, (200,), device="cuda")
    assert set(drawn.tolist()) == {3, 4, 5, 6, 7, 8}
    uniform, normal = torch.rand(1000, device="cuda"), torch.randn(1000, device="cuda")
    assert 0 <= uniform.min() < uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.1
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.2
    assert torch.multinomial(torch.tensor([0.0, 1, 0], device="cuda"), 1).item() == 1
    assert set(torch.bernoulli(torch.full((100,), 0.5, device="cuda")).tolist()) == {0.0, 1.0}
    assert torch.nn.functional.dropout(torch.ones(1000, device="cuda"), 0.5).unique().tolist() == [0.0, 2.0]
    assert torch.empty(100, device="cuda").uniform_(2, 3).min() >= 2


def test_random_numbers_do_not_use_up_the_users_own():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    torch.rand(5, device="cuda"), torch.randperm(5, device="cuda")
    torch.nn.functional.dropout(torch.ones(5, device="cuda"), 0.5)
    assert torch.rand(3).equal(expected)


LARGE = 1 << 22


def test_a_mask_of_a_large_tensor_gives_the_right_shape():
    x = torch.randn(1000, 8192, device="cuda")
    mask = torch.arange(1000, device="cuda") % 4 == 0
    assert x[mask].shape == (250, 8192)
    x[mask] = 0
    assert x[mask.nonzero().squeeze(1)].shape == (250, 8192)


def test_large_tensors_hold_what_a_gpu_would_hold():
    cpu = numbers(LARGE)
    large = cpu.cuda()
    assert (large > 0).sum().item() == (cpu > 0).sum() and large.argmax().item() == cpu.argmax()
    assert large[large > 1].shape == cpu[cpu > 1].shape and large[-1].item() == cpu[-1]
    ones = torch.ones(LARGE, device="cuda")
    assert ones.cpu().sum() == LARGE and ones[-1].item() == 1 and (ones > 0).all()


def test_bytes_of_a_freed_tensor_never_come_back():
    for size in (16, 512, 4096):
        marked = [torch.full((size,), 123, device="cuda") for _ in range(20)]
        del marked
        assert not torch.empty(size, device="cuda", dtype=torch.int64).eq(123).any()


def test_what_an_unseen_writer_leaves_is_unknown():
    """A backward pass runs in C++: the gradient of a large weight is not known, also where it is added to zeros."""
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD([weight])
    assert weight.grad.count_nonzero().item() == 0
    (weight * 2).sum().backward()
    ledger = functions.install().ledger
    assert ledger.is_unknown(weight.grad) and not ledger.is_unknown(weight)
    optimizer.step()


def test_a_decision_on_what_is_not_known_is_noted():
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    before = values.decisions()
    chosen = weight.grad[weight.grad > 0]
    (noted,) = [row for row in values.decisions() if row not in before]
    assert noted["operator"] == "__getitem__" and noted["why"] == "unknown" and noted["file"] == __file__
    assert noted["assumed"] == "least" and len(chosen) == 0


@pytest.mark.parametrize("invert", [torch.logical_not, torch.Tensor.__invert__, torch.bitwise_not])
def test_a_mask_and_its_inverse_are_assumed_alike(invert):
    """As where points are pruned: what the one keeps, the other drops."""
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    mask = weight.grad > 0
    others = invert(mask)
    before = values.get().decisions.total()
    kept, dropped = len(weight[mask]), len(weight[others])
    assert (kept, dropped) == (0, LARGE) and values.get().decisions.total() == before + 2
    joined = torch.cat([mask, torch.ones(3, dtype=torch.bool, device="cuda")])
    assert int(mask.sum()) == kept and int(joined.sum()) == kept + 3 and values.get().decisions.total() == before + 2
    assert len(weight[invert(others)]) == kept
    assert len(weight.view(2, -1)[others.view(2, -1)]) == dropped
    del others
    assert len(weight[weight.grad > 0]) == kept


def test_the_most_is_a_bound_for_a_mask_and_for_its_inverse(monkeypatch):
    """What is pruned by one mask must not hide what another one has added."""
    monkeypatch.setattr(values.get(), "most", True)
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    mask = weight.grad > 0
    assert (len(weight[~mask]), len(weight[mask])) == (LARGE, LARGE)


@pytest.mark.parametrize("to_host", [torch.Tensor.cpu, lambda x: torch.empty(x.shape, dtype=x.dtype).copy_(x)], ids=["cpu", "copy_"])
def test_whole_numbers_that_come_to_the_host_are_decided_there(to_host, monkeypatch):
    """NumPy, a slice, a size: code of the host's reads them, and nobody sees it."""
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    before = values.get().decisions.total()
    count, truths = to_host((weight.grad > 0).sum()), to_host(weight.grad > 0)
    assert values.get().decisions.total() == before + 2
    assert len(torch.zeros(9)[:count]) == len(truths[truths]) == count.numpy() == int(count) == 0
    monkeypatch.setattr(values.get(), "most", True)
    assert int(to_host((weight.grad > 0).sum()).numpy()) == MANY and to_host(weight.grad > 0).numpy().all()


def test_many_numbers_for_numpy_are_decided(monkeypatch):
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    before = values.get().decisions.total()
    host = weight.grad.cpu()
    assert values.get().decisions.total() == before
    assert host.numpy().max() == 0 and values.get().decisions.total() == before + 1
    monkeypatch.setattr(values.get(), "most", True)
    assert weight.grad.cpu().numpy().min() == MANY


@pytest.fixture(scope="module")
def kept():
    """A function of somebody's with a kernel for the card alone, which reads from it how much it has to give."""

    @torch.library.custom_op("fathom_tests::kept", mutates_args=(), device_types="cuda")
    def kept(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(int((x > 0).sum()))

    return kept


def test_what_a_function_reads_inside_and_the_cpu_cannot_give_is_zero(kept):
    weight = torch.ones(LARGE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    before = values.get().decisions.copy()
    assert len(kept(weight.grad)) == 0
    ((noted, count),) = (values.get().decisions - before).items()
    (name, why, assumed, (file, _), _) = noted
    assert (why, assumed, file, count) == ("unknown", "zero", __file__, 1) and name.startswith("kept")
    assert noted[2] in [row["assumed"] for row in values.decisions() if row["operator"] == name]


def test_random_numbers_follow_the_seed():
    torch.manual_seed(3)
    first = torch.randint(1000, (5,), device="cuda").tolist()
    torch.manual_seed(3)
    assert torch.randint(1000, (5,), device="cuda").tolist() == first
    assert torch.randint(1000, (5,), device="cuda").tolist() != first


def test_a_grad_scaler_does_not_skip():
    large = torch.nn.Linear(2048, 2048, device="cuda")
    optimizer = torch.optim.SGD(large.parameters(), lr=0.5)
    steps = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = large(torch.randn(64, 2048, device="cuda")).float().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(large.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert len(steps) == 3 and scaler.get_scale() == 1024.0


@pytest.mark.xfail(strict=True, reason="a list operator with one large tensor computes none of its small ones")
def test_a_small_weight_beside_a_large_one_is_trained():
    small, large = torch.ones(3, device="cuda", requires_grad=True), torch.nn.Linear(2048, 2048, device="cuda")
    optimizer = torch.optim.SGD([small, *large.parameters()], lr=0.5)
    ((small * 2).sum() + large(torch.randn(64, 2048, device="cuda")).mean()).backward()
    optimizer.step()
    assert small.tolist() == [0.0] * 3


def test_a_grad_scaler_sees_an_infinite_gradient(fresh):
    weight = torch.ones(3, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 512.0 and weight.tolist() == [1.0] * 3


def test_regnet_built_on_the_card_is_itself():
    models = pytest.importorskip("torchvision.models", reason="this Python has no torchvision")

    def count(model):
        return sum(parameter.numel() for parameter in model.parameters())

    with torch.device("cuda"):
        on_card = models.regnet_x_400mf(weights=None)
    assert next(on_card.parameters()).is_cuda
    assert count(on_card) == count(models.regnet_x_400mf(weights=None)) == 5_495_976


def test_values_outlive_inference_mode():
    """The first tensor of its kind is made there."""
    for dtype in (torch.int16, torch.complex128):
        with torch.inference_mode():
            assert (torch.ones(3, dtype=dtype, device="cuda") + 1).tolist() == [2] * 3
        assert (torch.ones(3, dtype=dtype, device="cuda") + 1).tolist() == [2] * 3


@pytest.mark.parametrize("is_autocast", [False, True])
def test_a_convolution_of_short_numbers_is_added_up_in_long_ones(is_autocast, monkeypatch):
    """As a card does it; with short ones a CPU takes a hundred times as long."""
    seen = []

    def conv1d(*args):
        seen.extend(args[:2])
        return torch.conv1d(*args)

    monkeypatch.setitem(evaluate.ON_CPU, torch.conv1d, conv1d)
    given = [numbers(1, 4, 50), numbers(2, 4, 9, seed=1)]
    on_card = [value.cuda() if is_autocast else value.half().cuda() for value in given]
    with torch.autocast("cuda", torch.float16, enabled=is_autocast):
        found = F.conv1d(*on_card)
    rounded = [value.half().float() for value in given]
    assert found.dtype is torch.float16 and found.cpu().equal(F.conv1d(*rounded).half())
    assert [value.dtype for value in seen] == [torch.float32] * 2 and all(map(torch.equal, seen, rounded))


def from_first(host, values):
    host[1:].copy_(values)


def every_second(host, values):
    host[1::2].copy_(values)


def assigned(host, values):
    host[2 : 2 + len(values)] = values


def into_rows(host, values):
    host.view(-1, 2)[:, 1].copy_(values)


def pieces(host, values):
    torch.split(host, len(host) // 2)[1].copy_(values)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32, torch.float16])
@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("write, count", [(from_first, 39), (every_second, 20), (assigned, 30), (into_rows, 20), (pieces, 20)])
def test_a_part_of_host_memory_gets_the_values_and_the_rest_stays(write, count, pin, dtype):
    before = list(border.faults)
    wanted = torch.full((40,), 7, dtype=dtype)
    host, given = wanted.clone(), (integers(count) + 1).to(dtype)
    host = host.pin_memory() if pin else host
    write(wanted, given)
    write(host, given.cuda())
    assert torch.equal(host, wanted) and border.faults == before


@pytest.mark.parametrize("kind", [int, float, bool])
def test_python_s_own_classes_are_types(kind):
    """As DeepSpeed makes numbers that all ranks compare."""
    assert torch.tensor([14, 0, 1], dtype=kind, device="cuda").cpu().tolist() == [kind(14), kind(0), kind(1)]
    assert torch.ones(2, dtype=kind, device="cuda").cpu().tolist() == [kind(1)] * 2
    assert torch.tensor(range(3), device="cuda").tolist() == [0, 1, 2]
