"""Each attention rule of ours against its paper's definition, written densely and naively."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from synvolution.nn.mixers.bigbird import BlockSparseAttention
from synvolution.nn.mixers.cosformer import CosineAttention
from synvolution.nn.mixers.linear import KernelAttention
from synvolution.nn.mixers.luna import NestedAttention
from synvolution.nn.mixers.nystromformer import NystromAttention, pseudo_inverse
from synvolution.nn.mixers.performer import RandomFeatureAttention, orthogonal_directions
from synvolution.nn.mixers.reformer import HashedAttention
from synvolution.nn.mixers.sinkhorn import SortedBlockAttention
from synvolution.nn.mixers.sparse import StridedAttention
from synvolution.nn.mixers.vanilla import SoftmaxAttention

B, H, E = 2, 3, 4


def operands(n: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, B, H, n, E, dtype=torch.float64)
    return q, k, v


def full(n: int) -> Tensor:
    return torch.ones(B, n, dtype=torch.bool)


def dense(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return scores.softmax(-1) @ v


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_vanilla() -> None:
    q, k, v = operands(7)
    close(SoftmaxAttention()(q, k, v, None), dense(q, k, v))


@pytest.mark.parametrize("n", [1, 2, 5, 12, 13, 17, 25])
@pytest.mark.parametrize("stride", [1, 2, 4, 5, 30])
def test_sparse(n: int, stride: int) -> None:
    q, k, v = operands(n)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    allowed = (distance.abs() < stride) | (distance % stride == 0)
    close(StridedAttention(stride)(q, k, v, full(n)), dense(q, k, v, allowed))


def test_sparse_makes_no_dense_matrix() -> None:
    """The largest tensor that the backward pass keeps grows as N√N, not as N²."""
    sizes = []

    def note(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    n = 1024
    q, k, v = torch.randn(3, 1, 1, n, E, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        StridedAttention(32)(q, k, v, torch.ones(1, n, dtype=torch.bool))
    assert max(sizes) == n * (3 * 32 + 32)


@pytest.mark.parametrize("n", [1, 2, 3, 12, 13, 29])
@pytest.mark.parametrize("num_hashes", [1, 3])
def test_reformer(n: int, num_hashes: int) -> None:
    """A softmax over the union, over rounds, of the bucket's positions in the chunk and the one before."""
    rule, (q, _, v) = HashedAttention(E, bucket_size=4, num_hashes=num_hashes, max_length=32).eval(), operands(n)
    buckets = rule.hash(q, full(n))[..., :n]
    k = F.normalize(q, dim=-1)
    expected = torch.empty_like(v)
    for b in range(B):
        for h in range(H):
            for i in range(n):
                attended = set()
                for r in range(num_hashes):
                    bucket = buckets[b, h, r].tolist()
                    order = sorted(range(n), key=lambda j: (bucket[j], j))
                    chunk = {j: place // 4 for place, j in enumerate(order)}
                    attended |= {j for j in range(n) if bucket[j] == bucket[i] and 0 <= chunk[i] - chunk[j] <= 1}
                others = sorted(attended - {i}) or [i]
                expected[b, h, i] = dense(q[b, h, i : i + 1], k[b, h, others], v[b, h, others])[0]
    close(rule(q, q, v, full(n)), expected)


def test_reformer_hashes_by_direction() -> None:
    """The same direction, the same bucket, whatever the length; as many buckets as the sequence needs."""
    rule, (q, _, _) = HashedAttention(E, bucket_size=4, num_hashes=2, max_length=64).eval(), operands(32)
    buckets = rule.hash(q, full(32))
    assert torch.equal(buckets, rule.hash(5 * q, full(32)))
    assert len(buckets.unique()) > 4
    assert buckets.max() < 8
    assert not rule.hash(q[:, :, :4], full(4)).any(), "a short sequence is one bucket"


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 29])
def test_bigbird(n: int) -> None:
    size, rule, (q, k, v) = 3, BlockSparseAttention(H, block_size=3, num_random=2), operands(n)
    last, block = (n - 1) // size, torch.arange(n) // size
    allowed = torch.zeros(H, n, n, dtype=torch.bool)
    for h in range(H):
        for i in range(last + 1):
            at_random = [int(u * (last + 1)) for u in rule.random_numbers[h, i].tolist()]
            chosen = range(last + 1) if i in (0, last) else [0, last, i - 1, i, i + 1, *at_random]
            for j in chosen:
                allowed[h] |= (block == i)[:, None] & (block == j)
    if n == 29:
        assert not allowed.all()
        assert not torch.equal(allowed[0], allowed[1]), "heads share their random blocks"
    close(rule(q, k, v, full(n)), dense(q, k, v, allowed))


def test_linear() -> None:
    q, k, v = operands(9)
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    close(KernelAttention()(q, k, v, full(9)), weights / weights.sum(-1, keepdim=True) @ v)


def test_cosformer() -> None:
    q, k, v = operands(9)
    distance = torch.arange(9)[:, None] - torch.arange(9)
    weights = q.relu() @ k.relu().mT * torch.cos(math.pi / 2 * distance.double() / 9)
    close(CosineAttention()(q, k, v, full(9)), weights @ v / weights.sum(-1, keepdim=True).clamp_min(1e-6))


def test_cosformer_counts_further_than_its_type() -> None:
    """float16 ends at 65504: a position beyond it must not become infinite."""
    q, k, v = (0.05 * torch.randn(3, 1, 1, 65_600, 2)).half()
    assert CosineAttention()(q, k, v, torch.ones(1, 65_600, dtype=torch.bool)).isfinite().all()


def test_performer_is_softmax_attention_on_average() -> None:
    """The error falls with the number of features, and is small with many."""
    q, k, v = operands(9)
    q, k = q / 2, k / 2  # the variance grows as exp |q + k|²
    errors = []
    for features in (16, 256, 65536):
        rule = RandomFeatureAttention(E, features=features).double().eval()
        errors.append((rule(q, k, v, full(9)) - dense(q, k, v)).abs().mean())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.02


def test_performer_kernel() -> None:
    """E φ(q)·φ(k) = exp(q·k), before normalisation."""
    q, k, _ = operands(5)
    q, k = q / 2, k / 2
    rule = RandomFeatureAttention(E, features=65536).double()
    features = [rule._exponents(t).exp() / math.sqrt(65536) for t in (q, k)]
    torch.testing.assert_close((features[0] @ features[1].mT).log(), q @ k.mT, rtol=0, atol=0.1)


def test_nystromformer_with_a_landmark_per_position() -> None:
    q, k, v = operands(9)
    rule = NystromAttention(H, landmarks=9, iterations=40, kernel_size=0)
    close(rule(q, k, v, full(9)), dense(q, k, v), 1e-6)


@pytest.mark.parametrize("n", [4, 9, 10, 13])
def test_nystromformer(n: int) -> None:
    (q, k, v), landmarks = operands(n), 4
    rule = NystromAttention(H, landmarks=landmarks, iterations=40, kernel_size=3).double()
    pieces = [[i for i in range(n) if i * landmarks // n == m] for m in range(landmarks)]
    q_mark, k_mark = (torch.stack([t[:, :, piece].mean(2) for piece in pieces], 2) for t in (q, k))

    def weights(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b.mT / math.sqrt(E)).softmax(-1)

    approximation = weights(q, k_mark) @ torch.linalg.pinv(weights(q_mark, k_mark)) @ weights(q_mark, k)
    assert rule.convolution is not None
    filters = rule.convolution.weight[:, 0, :, 0]  # (H, 3)
    around = F.pad(v, (0, 0, 1, 1))
    convolved = sum(filters[:, i, None, None] * around[:, :, i : i + n] for i in range(3))
    close(rule(q, k, v, full(n)), approximation @ v + convolved, 1e-6)


def test_pseudo_inverse_leaves_unused_landmarks_alone() -> None:
    a = torch.zeros(5, 6, 6, dtype=torch.float64)
    a[:, :4, :4] = torch.randn(5, 4, 4, dtype=torch.float64).softmax(-1) + torch.eye(4)
    found = pseudo_inverse(a, 20)
    close(found, torch.linalg.pinv(a))
    assert not found[:, 4:].any()
    assert not found[..., 4:].any()


def test_performer_directions_are_uniform() -> None:
    """On average they point nowhere, and each has a Gaussian vector's length."""
    many = orthogonal_directions(4, 40000)
    assert many.mean(1).abs().max() < 0.03
    torch.testing.assert_close(many.square().mean(1), torch.ones(4), rtol=0, atol=0.03)


def test_luna() -> None:
    (q, k, v), rule = operands(9), NestedAttention(H * E, H, memory=5).double()

    def heads(t: Tensor) -> Tensor:
        return t.unflatten(-1, (H, E)).transpose(-3, -2)

    gathered = dense(heads(rule.memory_query(rule.memory)), k, v).transpose(1, 2).flatten(-2)
    expected = dense(q, heads(rule.gathered_key(gathered)), heads(rule.gathered_value(gathered)))
    close(rule(q, k, v, full(9)), expected)


@pytest.mark.parametrize("n", [1, 3, 8, 11])
@torch.no_grad()
def test_sinkhorn(n: int) -> None:
    size, (q, k, v) = 4, operands(n)
    rule = SortedBlockAttention(H * E, H, max_length=12, block_size=size).double().eval()
    m = -(-n // size)
    cut = [range(i * size, min(n, (i + 1) * size)) for i in range(m)]
    joined = k.transpose(1, 2).flatten(-2)  # (B, N, D)
    means = torch.stack([joined[:, list(rows)].mean(1) for rows in cut], 1)
    scores = rule.sort_scores(rule.sort_hidden(means).relu()).relu().unflatten(-1, (H, 3))
    for b in range(B):
        for h in range(H):
            order = (scores[b, :, h, :m] / rule.temperature).exp()
            for _ in range(rule.iterations):
                order = order / order.sum(1, keepdim=True)
                order = order / order.sum(0, keepdim=True)
            for i in range(m):
                keys, values, logs = [k[b, h, j] for j in cut[i]], [v[b, h, j] for j in cut[i]], [0.0] * len(cut[i])
                for slot in range(size):
                    there = [j for j in range(m) if slot < len(cut[j])]
                    if there:
                        keys.append(sum(order[i, j] * k[b, h, cut[j][slot]] for j in there))
                        values.append(sum(order[i, j] * v[b, h, cut[j][slot]] for j in there))
                        logs.append(math.log(float(sum(order[i, j] for j in there) / order[i].sum())))
                rows = q[b, h, list(cut[i])]
                weights = (rows @ torch.stack(keys).mT / math.sqrt(E) + torch.tensor(logs, dtype=q.dtype)).softmax(-1)
                close(rule(q, k, v, full(n))[b, h, list(cut[i])], weights @ torch.stack(values))


def test_sinkhorn_permutation_is_doubly_stochastic() -> None:
    rule = SortedBlockAttention(H * E, H, max_length=40, block_size=4, iterations=300).double().eval()
    k, real = torch.randn(B, H, 10, 4, E, dtype=torch.float64), torch.ones(B, 10, 4, dtype=torch.bool)
    real[1, 6:] = False
    order = rule.permutation(k * real[:, None, ..., None], real)
    for dim in (-1, -2):
        close(order.sum(dim), torch.ones(B, H, 10, dtype=torch.float64), 1e-6)
    close(order[1, :, 6:], torch.eye(10, dtype=torch.float64)[6:].expand(H, -1, -1))
    assert order[1, :, :6, :6].std() > 0
