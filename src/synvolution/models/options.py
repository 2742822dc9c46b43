"""The choices one makes for a Converter; sizes that come with the data are added by the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from synvolution.nn.mixers import MIXERS
from synvolution.nn.pooling import POOLINGS
from synvolution.nn.position import POSITIONS

#: Mixers that are generated from eigenvalues and angles, and share their options.
UNITARY_MIXERS = ("kernelution", "synvolution")


@dataclass(kw_only=True)
class ModelOptions:
    """Sizes and parts of a Converter; defaults are the paper's where it gives one."""

    hidden_size: int = 64
    """Features D of a position (the paper's embedding size)."""
    intermediate_size: int = 256
    """Features of the feed-forward network (the paper's hidden size)."""
    num_layers: int = 1
    """Blocks; the paper has 1. With 0 the embedding is pooled: with "rpe" that is the GRU alone."""
    num_heads: int = 1
    """Heads H of the mixer; the paper has 1."""
    mixer: str = "kernelution"
    """"kernelution" (the paper's), "synvolution" (without polynomial), "none" (the control), or a baseline's name."""
    mixer_options: dict[str, int | float | bool | str] | None = None
    """Further arguments of the mixer, by name."""
    position: str = "rpe"
    """"rpe" (GRU, the paper's), "ape" (learned), "spe" (sinusoidal) or "none"."""
    position_layers: int = 2
    """Layers of the GRU of "rpe"."""
    order: int = 2
    """Degree K of the kernel polynomial."""
    basis: str = "chebyshev"
    """Basis of the kernel polynomial."""
    basis_options: dict[str, float | int] | None = None
    """Parameters of the basis, e.g. a and b of "jacobi"."""
    damping: str | None = None
    """Gibbs damping of the kernel polynomial; none in the paper, where the loss takes its place."""
    damping_options: dict[str, float | int] | None = None
    """Parameters of the damping, e.g. xi of "lorentz"."""
    eta: float | int = 0.001
    """Weight η of the kernel polynomial loss: (1−η) task loss + η penalty. 0 leaves it out; for "kernelution" alone."""
    orders: int = 1
    """Orders L of the DHHP matrix."""
    permutation: str | None = None
    """None, "block", "bit_reversal" or "learned"."""
    reach: float | int | str | list[float] = 0.0
    """Initial bias of γ in radians: a number, one per head, or "spread" (local to nearly global). The paper's is 0."""
    angle_features: int | None = None
    """Features averaged to one angle; None for ⌈D/6⌉."""
    pooling: str = "mean"
    """"mean" (the paper's), "first", "last", "sum", "max" or "ends" (mean, first and last)."""
    bias: bool = True
    """Whether linear maps have one."""
    embedding_dropout: float | int = 0.1
    """Rate after embedding and position."""
    value_dropout: float | int = 0.1
    """Rate on the mixer's values."""
    feedforward_dropout: float | int = 0.1
    """Rate inside the feed-forward network."""
    eigenvalue_dropout: float | int = 0.1
    """Rate inside the generator of eigenvalues."""
    eigenvector_dropout: float | int = 0.1
    """Rate inside the generator of angles."""
    classifier_dropout: float | int = 0.1
    """Rate inside the classification head."""

    def check(self) -> None:
        """Refuse what no model can be built from.

        Example:
            >>> ModelOptions(position="gps").check()
            Traceback (most recent call last):
            ValueError: position is 'gps': choose one of rpe, ape, spe, none
        """
        for name, table in (("mixer", MIXERS), ("position", POSITIONS), ("pooling", POOLINGS)):
            if (value := getattr(self, name)) not in table:
                raise ValueError(f"{name} is {value!r}: choose one of {', '.join(table)}")
        for name in ("hidden_size", "intermediate_size", "num_heads", "position_layers", "order", "orders"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}: expected at least 1")
        if self.num_layers < 0:
            raise ValueError(f"num_layers is {self.num_layers}: expected 0 or more")
        for name in ModelOptions.__dataclass_fields__:
            if name.endswith("_dropout") and not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: expected a rate from 0 to below 1")
        if not 0 <= self.eta < 1:
            raise ValueError(f"eta is {self.eta}: expected a weight from 0 to below 1")

    def mixer_arguments(self) -> dict[str, Any]:
        """Arguments of :func:`synvolution.nn.build_mixer` besides name, width and longest sequence.

        Example:
            >>> ModelOptions(mixer="none").mixer_arguments()
            {'num_heads': 1, 'dropout': 0.1, 'bias': True}
        """
        arguments: dict[str, Any] = {"num_heads": self.num_heads, "dropout": self.value_dropout}
        if self.mixer in (*UNITARY_MIXERS, "none"):
            arguments["bias"] = self.bias
        if self.mixer in UNITARY_MIXERS:
            names = ("reach", "orders", "permutation", "angle_features", "eigenvalue_dropout", "eigenvector_dropout")
            arguments |= {name: getattr(self, name) for name in names}
        if self.mixer == "kernelution":
            polynomial = ("order", "basis", "basis_options", "damping", "damping_options")
            arguments |= {name: getattr(self, name) for name in polynomial}
        return arguments | (self.mixer_options or {})
