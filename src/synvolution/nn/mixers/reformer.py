"""Reformer's hashed attention (Kitaev et al., Reformer: The Efficient Transformer, 2020).

Ours: reformer-pytorch 1.4.4 hashes with new random numbers at every evaluation (two calls differ), and transformers'
class makes them repeatable only by reseeding torch's global generator and fixes its buckets by the first batch it
sees.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, blocks, head_features, masked_softmax

#: Score of a position with itself: it counts only where nothing else is attended to.
SELF_SCORE = -1e5
#: The number of buckets is bounded by that for this many positions if the longest sequence is not given.
LENGTH_IF_NOT_GIVEN = 16384


class HashedAttention(nn.Module):
    """Softmax attention of i to the j that fall into the same bucket in one of several hashes.

    A hash is argmax([xR, −xR]) with a random R. Positions are sorted by bucket and cut into chunks; a position
    attends to those of its bucket in its chunk and the chunk before. Queries are also the keys (normalised). The
    rounds are joined into one softmax over the union of what they attend to. R is drawn anew in each training step;
    in evaluation it is a buffer.

    Args:
        head_dim: features D/H.
        bucket_size: positions in a chunk, and on average in a bucket. A sequence up to this length is one bucket.
        num_hashes: rounds.
        max_length: longest sequence, for the number of random directions.

    Shape:
        q, v (B, H, N, D/H), k ignored, real (B, N) bool → (B, H, N, D/H). Memory O(N · bucket_size · num_hashes);
        hashing takes N²/bucket_size multiplications by the directions.

    Example:
        >>> q, v = torch.randn(2, 2, 4, 10, 8)
        >>> HashedAttention(8, bucket_size=4)(q, q, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    rotations: Tensor

    def __init__(
        self, head_dim: int, *, bucket_size: int = 64, num_hashes: int = 4, max_length: int | None = None
    ) -> None:
        super().__init__()
        at_least_one(bucket_size=bucket_size, num_hashes=num_hashes, max_length=max_length or LENGTH_IF_NOT_GIVEN)
        self.bucket_size, self.num_hashes = bucket_size, num_hashes
        directions = -(-(max_length or LENGTH_IF_NOT_GIVEN) // (2 * bucket_size))
        self.register_buffer("rotations", torch.randn(num_hashes, head_dim, directions))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend within buckets."""
        n, rounds = q.shape[2], self.num_hashes
        if n <= self.bucket_size:
            return _attend_in_one_bucket(q, v, real)
        with torch.no_grad():
            buckets = self.hash(q, real)  # (B, H, R, N'), N' the next multiple of the chunk
            order = buckets.argsort(dim=-1, stable=True)
            rank = order.argsort(dim=-1)
            allowed, itself, times = self._pairs(buckets, order, rank)
        q, v = (blocks(t, self.bucket_size, 2).flatten(2, 3) for t in (q, v))
        q, v = (_take(t, order).unflatten(3, (-1, self.bucket_size)) for t in (q, v))  # (B, H, R, C, m, D/H)
        scores = (q * q.shape[-1] ** -0.5) @ _with_previous(F.normalize(q, dim=-1)).mT  # (B, H, R, C, m, 2m)
        scores = torch.where(itself, SELF_SCORE, scores - times.to(scores.dtype).log())
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        total = scores.logsumexp(-1, keepdim=True)
        mixed = (scores - total).exp() @ _with_previous(v)
        mixed, total = (t.flatten(3, 4) for t in (mixed, total))  # (B, H, R, N', ·)
        mixed, total = (t.gather(3, rank[..., None].expand_as(t)) for t in (mixed, total))
        out: Tensor = (mixed * total.softmax(2)).sum(2) if rounds > 1 else mixed.squeeze(2)
        return out[:, :, :n]

    def hash(self, q: Tensor, real: Tensor) -> Tensor:
        """Bucket of each position in each round, (B, H, R, N'); padding has the last and is sorted to the end."""
        rotations = torch.randn_like(self.rotations) if self.training else self.rotations
        lengths = real.sum(1)
        wanted = (lengths + 2 * self.bucket_size - 1) // (2 * self.bucket_size)  # (B,): pairs of buckets
        used = min(rotations.shape[-1], -(-q.shape[2] // (2 * self.bucket_size)))
        unused = torch.arange(used, device=q.device) >= wanted[:, None]  # (B, used)
        found = []
        for rotation in rotations[..., :used].to(q.dtype):  # a round at a time: the largest tensor here
            turned = q @ rotation
            both = torch.cat((turned, -turned), -1).masked_fill(unused.repeat(1, 2)[:, None, None], -torch.inf)
            found.append(both.argmax(-1))
        buckets = torch.stack(found, 2).masked_fill((lengths <= self.bucket_size)[:, None, None, None], 0)
        buckets = buckets.masked_fill(~real[:, None, None], 2 * used)
        return F.pad(buckets, (0, -q.shape[2] % self.bucket_size), value=2 * used)

    def _pairs(self, buckets: Tensor, order: Tensor, rank: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For the pairs of a chunk: attended in this round? the same position? in how many rounds attended?"""
        chunk, buckets = rank // self.bucket_size, buckets.int()  # int32: tensors of all pairs are large
        position = order.unflatten(-1, (-1, self.bucket_size))  # (B, H, R, C, m)
        itself = position[..., None] == _with_previous(position[..., None], nothing=-1).mT
        times = torch.zeros_like(itself, dtype=torch.int32)
        attended = []
        for r in range(self.num_hashes):
            bucket, place = (t[:, :, r, None].expand_as(order).gather(-1, order) for t in (buckets, chunk.int()))
            bucket, place = (t.unflatten(-1, (-1, self.bucket_size))[..., None] for t in (bucket, place))
            same = bucket == _with_previous(bucket, nothing=-1).mT
            back = place - _with_previous(place, nothing=-1).mT
            both = same & (back >= 0) & (back <= 1)
            times += both
            attended.append(both[:, :, r])
        return torch.stack(attended, 2) | itself, itself, times.clamp_min(1)


def _attend_in_one_bucket(q: Tensor, v: Tensor, real: Tensor) -> Tensor:
    """What hashing comes to where everything is in one bucket and chunk, without sorting and filling up."""
    itself = torch.eye(q.shape[2], dtype=torch.bool, device=q.device)
    scores = (q * q.shape[-1] ** -0.5) @ F.normalize(q, dim=-1).mT
    return masked_softmax(torch.where(itself, SELF_SCORE, scores), real[:, None, None] | itself) @ v


def _take(x: Tensor, order: Tensor) -> Tensor:
    """Rows of x (B, H, N, E) in each round's order (B, H, R, N) → (B, H, R, N, E)."""
    many = x[:, :, None].expand(-1, -1, order.shape[2], -1, -1)
    return many.gather(3, order[..., None].expand_as(many))


def _with_previous(x: Tensor, nothing: float = 0.0) -> Tensor:
    """(…, C, m, E) → (…, C, 2m, E): the chunk before, filled with ``nothing`` for the first, then the chunk."""
    before = F.pad(x[..., :-1, :, :], (0, 0, 0, 0, 1, 0), value=nothing)
    return torch.cat((before, x), -2)


def reformer(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    bucket_size: int = 64,
    num_hashes: int = 4,
    bias: bool = True,
) -> Attention:
    """Reformer's attention. Its reversible layers belong to the model, not to the mixer, and are left out.

    Example:
        >>> reformer(8, num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    head_dim = head_features(dim, num_heads)
    rule = HashedAttention(head_dim, bucket_size=bucket_size, num_hashes=num_hashes, max_length=max_length)
    return Attention(dim, rule, num_heads=num_heads, dropout=dropout, bias=bias, shared=True)
