"""How to train: the options of a run besides data and model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Optimiser, schedule, selection and precision of a run.

    Example:
        >>> TrainingOptions(epochs=0)
        Traceback (most recent call last):
        ValueError: epochs is 0: expected more than 0
    """

    epochs: float = 20.0
    """Passes over the training rows, if nothing stops it earlier."""
    max_steps: int | None = None
    """Steps of the optimiser in all, in place of the epochs."""
    batch_size: int = 32
    """Sequences per step of the optimiser, over all processes and accumulated parts."""
    accumulate: int = 1
    """Parts a batch is cut into where memory does not hold it."""
    learning_rate: float = 0.001
    """Peak rate of AdamW."""
    weight_decay: float = 0.001
    """Decay of AdamW; scales and biases are left out."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How the rate falls after the warm-up."""
    warmup: float = 0.05
    """Share of the steps in which the rate rises from zero."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 for no limit."""
    validate_every: float = 1.0
    """Epochs between validations."""
    patience: int = 10
    """Validations without a new best after which training ends; 0: never before the last step."""
    select: Literal["accuracy", "loss"] = "accuracy"
    """What makes a model the best on validation."""
    checkpoint_minutes: float = 10.0
    """Minutes between checkpoints, besides those at each new best (single process; else at each validation)."""
    order: Literal["shuffled", "given"] = "shuffled"
    """Rows in random order, or, for data that grows harder, as they come (batches of similar lengths either way)."""
    start_from: str | None = None
    """Folder of a trained model whose weights to start from; for other classes the head is new."""
    seed: int = 0
    """Decides initial weights, order of the rows and dropout."""
    precision: Literal["float32", "bf16", "fp16"] = "float32"
    """Mixed precision by autocast; the operator and the GRU stay in float32."""
    gradient_checkpointing: bool = False
    """Compute blocks twice instead of keeping their inner results."""
    compile: bool = False
    """Compile the model with torch.compile: a minute at the start, then faster steps."""
    log_every: int = 20
    """Steps between lines of the log."""
    evaluation_batch_size: int | None = None
    """Sequences per batch when no gradient is needed; None for the batch size."""

    def __post_init__(self) -> None:
        for name in ("epochs", "validate_every", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: expected more than 0")
        for name in ("batch_size", "accumulate", "log_every", "max_steps", "evaluation_batch_size"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} is {value}: expected at least 1")
        for name in ("weight_decay", "clip", "patience", "checkpoint_minutes", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}: expected 0 or more")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup is {self.warmup}: expected a share from 0 to below 1")

    def batch_per_process(self, processes: int) -> int:
        """Sequences of one part of a batch on one process.

        Example:
            >>> TrainingOptions(batch_size=64, accumulate=2).batch_per_process(4)
            8
        """
        parts = processes * self.accumulate
        if self.batch_size % parts:
            raise ValueError(
                f"a batch of {self.batch_size} does not divide into {processes} processes × {self.accumulate} parts: "
                "change batch_size or accumulate"
            )
        return self.batch_size // parts
