"""What the custom operators share: the call, second derivatives, the batching rule of ``torch.func.vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def call(op: Any, plain: Callable[..., Tensor], *args: Any) -> Tensor:
    """Call a custom operator, or its plain torch form where PyTorch cannot differentiate custom operators.

    That is forward mode, where the tangent would silently be lost, and ``torch.func.grad`` and its relatives.
    """
    if forward_ad._current_level >= 0:
        return plain(*args)
    if torch.compiler.is_compiling():
        return op(*args)
    try:
        return op(*args)
    except RuntimeError as error:
        if "functorch transforms" not in str(error):
            raise
        return plain(*args)


def register_second_order(backward_op: Any, plain: Callable[..., tuple[Tensor, ...]], tensors: int) -> None:
    """Give a backward operator a derivative of its own by differentiating its plain torch form.

    Args:
        backward_op: a custom operator whose first ``tensors`` arguments are the differentiable ones.
        plain: the same function of the same arguments in differentiable torch.
    """

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.rest = inputs[tensors:]
        ctx.save_for_backward(*inputs[:tensors])

    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[:tensors]
        saved = ctx.saved_tensors
        with torch.enable_grad():
            # views, not copies cut off: they keep the graph when derivatives of still higher order are asked for
            inputs = tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in saved)
            outputs = plain(*inputs, *ctx.rest)
        wanted = [t for t, need in zip(inputs, needed, strict=True) if need]
        found = iter(
            torch.autograd.grad(outputs, wanted, grads, create_graph=torch.is_grad_enabled(), materialize_grads=True)
        )
        return *(next(found) if need else None for need in needed), *(None for _ in ctx.rest)

    backward_op.register_autograd(backward, setup_context=save)


def batch_first(size: int, dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Merge the dimension that vmap maps over into the leading batch dimension of each tensor."""
    merged = []
    for dim, tensor in zip(dims, tensors, strict=True):
        mapped = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        merged.append(mapped.reshape(size * mapped.shape[1], *mapped.shape[2:]))
    return merged


def register_gradient(op: Any, backward: Callable[..., tuple[Any, ...]], plain: Callable[..., Tensor]) -> None:
    """Give an operator of tensors (or None), then other arguments, its derivatives of every order.

    Args:
        op: the custom operator; its operands are saved for the backward.
        backward: (grad, *arguments) → the gradients of the leading tensors, in order; any for those that need none.
        plain: the operator in differentiable torch, for second derivatives.
    """

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.tensors = sum(value is None or isinstance(value, Tensor) for value in inputs)
        ctx.rest = inputs[ctx.tensors :]
        ctx.save_for_backward(*inputs[: ctx.tensors])

    def formula(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[: ctx.tensors]
        if torch.is_grad_enabled():  # the gradient will be differentiated
            inputs = [t.view_as(t) if need else t for t, need in zip(saved, needed, strict=True)]
            wanted = [t for t, need in zip(inputs, needed, strict=True) if need]
            found = iter(torch.autograd.grad(plain(*inputs, *ctx.rest), wanted, grad, create_graph=True))
            return *(next(found) if need else None for need in needed), *(None for _ in ctx.rest)
        grads = backward(grad, *saved, *ctx.rest)
        return *(g if need else None for g, need in zip(grads, needed, strict=True)), *(None for _ in ctx.rest)

    op.register_autograd(formula, setup_context=save)


def register_loop_vmap(op: Any) -> None:
    """Let ``torch.func.vmap`` call an operator once for each index of the mapped dimension."""

    def one(index: int, dims: Sequence[int | None], args: Sequence[Any]) -> Any:
        return op(*(a if dim is None else a.select(dim, index) for a, dim in zip(args, dims, strict=True)))

    def rule(info: Any, dims: Sequence[int | None], *args: Any) -> tuple[Any, Any]:
        results = [one(index, dims, args) for index in range(info.batch_size)]
        if isinstance(results[0], Tensor):
            return torch.stack(results), 0
        return tuple(torch.stack(parts) for parts in zip(*results, strict=True)), (0,) * len(results[0])

    op.register_vmap(rule)
