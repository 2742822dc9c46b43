"""Synvolution's operator: against dense matrices, masks, heads, orders, permutations, for every backend."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import bit_reversal, block_transpose, gumbel_sinkhorn, hard_permutation
from synvolution.ops._backends import fold_heads, runnable, unfold_heads
from tests.oracles import assert_near, assert_same_gradients, dense_synvolve, gradients, to_complex, to_planar

SIZES = [1, 2, 3, 5, 8, 33, 64]
RUNNABLE = runnable(torch.device("cpu"))
backends = pytest.mark.parametrize("backend", RUNNABLE)


def operands(
    n: int,
    orders: int | None = None,
    heads: int | None = None,
    batch: int = 2,
    d: int = 4,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    own = (batch,) if heads is None else (batch, heads)
    order = () if orders is None else (orders,)
    angles = [2 * math.pi * torch.rand(*own, *order, n - 1, 3, dtype=dtype) for _ in range(2)]
    return [torch.randn(batch, n, 2, d, dtype=dtype), *angles, torch.randn(*own, n, dtype=dtype)]


def permutation_of(kind: str, n: int, orders: int) -> Tensor:
    """One permutation of each kind."""
    if kind == "block":
        return block_transpose(n, next(m for m in (4, 3, 2, 11, n) if n % m == 0))
    if kind == "bit reversal":
        return bit_reversal(n)
    if kind == "given":
        return torch.stack([torch.randperm(n) for _ in range(orders)])
    if kind == "per sequence":
        return torch.stack([torch.randperm(n) for _ in range(2 * orders)]).reshape(2, orders, n)
    logits = torch.randn(orders, n, n, dtype=torch.float64)
    return gumbel_sinkhorn(logits) if kind == "soft" else hard_permutation(logits)


def as_matrices(permutation: Tensor, n: int, orders: int) -> Tensor:
    if permutation.is_floating_point():
        return permutation
    matrices = torch.eye(n, dtype=torch.float64)[permutation]
    return matrices.expand(orders, n, n) if permutation.ndim == 1 else matrices


@pytest.mark.parametrize("orders", [1, 2, 3])
@pytest.mark.parametrize("n", SIZES)
def test_equals_dense(n: int, orders: int) -> None:
    inputs = operands(n, orders)
    expected = gradients(dense_synvolve, inputs)
    for backend in RUNNABLE:
        found = gradients(lambda *a, b=backend: sv.synvolve(*a, backend=b), inputs)
        for k, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_near(f, e, what=f"{backend}, result {k}")


KINDS = ["block", "bit reversal", "given", "per sequence", "soft", "hard"]
CASES = [
    (kind, n, orders)
    for kind in KINDS
    for n in SIZES
    for orders in (1, 2, 3)
    if kind != "bit reversal" or n & (n - 1) == 0
]


@pytest.mark.parametrize(("kind", "n", "orders"), CASES)
def test_permutations_equal_dense(kind: str, n: int, orders: int) -> None:
    permutation = permutation_of(kind, n, orders)
    matrices = as_matrices(permutation, n, orders)

    def oracle(*inputs: Tensor) -> Tensor:
        v, lower, upper, phase = inputs
        return dense_synvolve(v, lower, upper, phase, matrices)

    inputs = operands(n, orders)
    expected = gradients(oracle, inputs)
    for backend in RUNNABLE:
        found = gradients(lambda *a, b=backend: sv.synvolve(*a, permutation=permutation, backend=b), inputs)
        for k, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_near(f, e, what=f"{backend}, result {k}")


def test_soft_permutation_gets_a_gradient() -> None:
    v, lower, upper, phase = operands(5, 2)
    logits = torch.randn(2, 5, 5, dtype=torch.float64)

    def ours(logits: Tensor) -> Tensor:
        return sv.synvolve(v, lower, upper, phase, permutation=gumbel_sinkhorn(logits, noise=0.0))

    def oracle(logits: Tensor) -> Tensor:
        return dense_synvolve(v, lower, upper, phase, gumbel_sinkhorn(logits, noise=0.0))

    assert_same_gradients(ours, oracle, [logits])


@backends
def test_heads_are_separate_operators(backend: str) -> None:
    v, lower, upper, phase = operands(7, 2, heads=2, d=6)
    out = sv.synvolve(v, lower, upper, phase, backend=backend)
    for h in range(2):
        part = slice(3 * h, 3 * h + 3)
        assert_near(out[..., part], dense_synvolve(v[..., part], lower[:, h], upper[:, h], phase[:, h]))
    assert torch.equal(unfold_heads(fold_heads(v, 3), 3), v)


@backends
def test_heads_with_permutation_gradients(backend: str) -> None:
    permutation = permutation_of("per sequence", 7, 2)
    inputs = operands(7, 2, heads=2, d=6)
    plain = gradients(lambda *a: sv.synvolve(*a, permutation=permutation, backend="loop"), inputs)
    for found, expected in zip(
        gradients(lambda *a: sv.synvolve(*a, permutation=permutation, backend=backend), inputs), plain, strict=True
    ):
        assert_near(found, expected)


def test_missing_order_means_one() -> None:
    v, lower, upper, phase = operands(6)
    assert torch.equal(sv.synvolve(v, lower, upper, phase), sv.synvolve(v, lower[:, None], upper[:, None], phase))


def test_diagonal_has_no_effect() -> None:
    """Φ = D Q gives Φ^H e^{iΛ} Φ = Q^H e^{iΛ} Q: the paper's θ changes nothing and has no gradient."""
    v, lower, upper, phase = operands(9, 1)
    theta = torch.randn(2, 9, dtype=torch.float64, requires_grad=True)
    op = sv.DHHP(lower, upper, theta)
    out = op.H @ (torch.exp(1j * phase)[..., None] * (op @ to_complex(v)))
    assert_near(to_planar(out), sv.synvolve(v, lower, upper, phase))
    (gradient,) = torch.autograd.grad((to_planar(out) * torch.randn_like(v)).sum(), theta)
    assert gradient.abs().max() < 1e-12


@backends
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_changes_nothing(backend: str, side: str) -> None:
    n, lengths = 9, (9, 1, 5)
    v, lower, upper, phase = operands(n, 2, batch=3)
    mask = torch.stack([torch.arange(n) < k if side == "right" else torch.arange(n) >= n - k for k in lengths])
    out = sv.synvolve(v, lower, upper, phase, mask, backend=backend)
    for i, k in enumerate(lengths):
        rows = slice(0, k) if side == "right" else slice(n - k, n)
        rotations = slice(0, k - 1) if side == "right" else slice(n - k, n - 1)
        alone = sv.synvolve(
            v[i : i + 1, rows],
            lower[i : i + 1, :, rotations],
            upper[i : i + 1, :, rotations],
            phase[i : i + 1, rows],
            backend=backend,
        )
        if backend == "loop":
            assert torch.equal(out[i, rows], alone[0]), "not bit for bit"
        assert_near(out[i, rows], alone[0])
        assert_near(out[i, ~mask[i]], v[i, ~mask[i]], what="padded rows stay as they are")


@backends
def test_padding_gets_no_angle_gradient_and_may_hold_anything(backend: str) -> None:
    v, lower, upper, phase = operands(6)
    mask = torch.arange(6).expand(2, 6) < 4

    def masked(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> Tensor:
        return sv.synvolve(v, lower, upper, phase, mask, backend=backend)

    first = gradients(masked, [v, lower, upper, phase])
    assert first[2][:, 3:].abs().max() == 0
    assert first[4][:, 4:].abs().max() == 0
    lower[:, 3:], upper[:, 3:], phase[:, 4:] = math.nan, math.inf, math.nan
    v[:, 4:] = 1e30
    second = gradients(masked, [v, lower, upper, phase])
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        rows = slice(0, 3 if k in (2, 3) else 4)
        assert torch.equal(a[:, rows], b[:, rows])


def test_mask_with_permutation() -> None:
    v, lower, upper, phase = operands(6)
    mask = torch.stack((torch.arange(6) < 6, torch.arange(6) < 4))
    rows = torch.stack((block_transpose(6, 2), torch.cat((block_transpose(4, 2), torch.tensor([4, 5])))))[:, None]
    out = sv.synvolve(v, lower, upper, phase, mask, permutation=rows)
    alone = sv.synvolve(v[1:, :4], lower[1:, :3], upper[1:, :3], phase[1:, :4], permutation=block_transpose(4, 2))
    assert_near(out[1:, :4], alone)
    with pytest.raises(ValueError, match="moves padded rows"):
        sv.synvolve(v, lower, upper, phase, mask, permutation=block_transpose(6, 2))
    with pytest.raises(ValueError, match="without a mask"):
        sv.synvolve(v, lower, upper, phase, mask, permutation=torch.eye(6, dtype=torch.float64))


@backends
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unitary_and_identity(backend: str, dtype: torch.dtype) -> None:
    v, lower, upper, phase = operands(50, 2, dtype=dtype)
    out = sv.synvolve(v, lower, upper, phase, backend=backend)
    assert_near(out.norm(), v.norm())
    assert_near(sv.synvolve(out, lower, upper, -phase, backend=backend), v)
    assert_near(sv.synvolve(v, lower, upper, torch.zeros_like(phase), backend=backend), v)


@backends
def test_gradcheck_first_and_second_order(backend: str) -> None:
    inputs = [t.requires_grad_() for t in operands(3, 2, heads=2, batch=1, d=2)]
    permutation = torch.tensor([2, 0, 1])
    assert torch.autograd.gradcheck(lambda *a: sv.synvolve(*a, permutation=permutation, backend=backend), inputs)
    assert torch.autograd.gradgradcheck(lambda *a: sv.synvolve(*a, permutation=permutation, backend=backend), inputs)


@backends
@pytest.mark.parametrize("index", [None, torch.tensor([[[1, 0, 2, 4, 3]]])], ids=["identity", "permuted"])
def test_opcheck(backend: str, index: Tensor | None) -> None:
    inputs = operands(5, 1, heads=2)
    out = torch.ops.synvolution.synvolve(*inputs, index, backend)
    leaves = [t.clone().requires_grad_() for t in inputs]
    torch.library.opcheck(torch.ops.synvolution.synvolve, (*leaves, index, backend))
    torch.library.opcheck(torch.ops.synvolution.synvolve_backward, (inputs[0], out, *inputs[1:], index, backend))


def test_saves_only_the_output() -> None:
    v, lower, upper, phase = (t.requires_grad_() for t in operands(6, 3))
    saved: list[Tensor] = []

    def pack(t: Tensor) -> Tensor:
        saved.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = sv.synvolve(v, lower, upper, phase)
    signals = [t for t in saved if t.shape == v.shape]
    assert len(signals) == 1
    assert torch.equal(signals[0], out)


@pytest.mark.parametrize("masked", [False, True])
def test_compiles_whole_with_dynamic_length(masked: bool) -> None:
    def plain(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> Tensor:
        n = v.shape[1]
        mask = torch.arange(n).expand(2, n) < 5 if masked else None
        return sv.synvolve(v, lower, upper, phase, mask)

    compiled = torch.compile(plain, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (6, 7, 9):
        assert_same_gradients(compiled, plain, operands(n))


def test_vmap_and_functional_transforms() -> None:
    v, lower, upper, phase = (torch.stack(pair) for pair in zip(operands(5), operands(5), strict=True))
    mapped = torch.func.vmap(sv.synvolve)(v, lower, upper, phase)
    for i in range(2):
        assert_near(mapped[i], sv.synvolve(v[i], lower[i], upper[i], phase[i]))
    rows = torch.stack([torch.randperm(5) for _ in range(4)]).reshape(2, 2, 1, 5)
    canonical = v[0], lower[0][:, None, None], upper[0][:, None, None], phase[0][:, None]
    both = torch.func.vmap(lambda r: torch.ops.synvolution.synvolve(*canonical, r, "auto"))(rows)
    for i in range(2):
        assert_near(both[i], sv.synvolve(v[0], lower[0], upper[0], phase[0], permutation=rows[i]))

    def loss(phase: Tensor) -> Tensor:
        return sv.synvolve(v[0], lower[0], upper[0], phase).square().sin().sum()

    phase0 = phase[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(phase0), phase0)
    assert_near(torch.func.grad(loss)(phase[0]), expected)
    assert_near(torch.func.jacfwd(loss)(phase[0]), expected)
