"""What a Converter is made of, as a Hugging Face configuration."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from synvolution.models.options import ModelOptions


@strict
class ConverterConfig(PreTrainedConfig, ModelOptions):
    """Configuration of the Converter models: :class:`ModelOptions` and what comes with the data.

    ``num_hidden_layers`` and ``num_attention_heads`` are other names of ``num_layers`` and ``num_heads``.

    Args:
        vocab_size: number of tokens, padding included.
        input_features: None for tokens (``input_ids``); otherwise the number of channels of ``input_values``, real
            numbers that a linear map takes to the hidden size.
        max_position_embeddings: longest sequence; needed by "ape", by a learned permutation, and by mixers with a
            parameter per position. None: any length.
        pad_token_id: the token of padding; its embedding is zero and stays zero. None: there is no such token.

    Example:
        >>> config = ConverterConfig(vocab_size=16, hidden_size=32, intermediate_size=128, num_labels=10)
        >>> config.mixer, config.position, config.num_hidden_layers, config.num_labels
        ('kernelution', 'rpe', 1, 10)
    """

    model_type = "converter"
    attribute_map = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}  # noqa: RUF012 (as in its base)

    vocab_size: int = 257
    input_features: int | None = None
    max_position_embeddings: int | None = None
    pad_token_id: int | None = 0

    def __post_init__(self, **kwargs: Any) -> None:
        """Check what can be checked without building the model."""
        super().__post_init__(**kwargs)
        self.check()
        if self.vocab_size < 1:
            raise ValueError(f"vocab_size is {self.vocab_size}: expected at least 1")
        for name in ("input_features", "max_position_embeddings"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} is {value}: expected at least 1, or None")
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(f"pad_token_id is {self.pad_token_id}: expected a token from 0 to {self.vocab_size - 1}")
        if self.max_position_embeddings is None and (self.position == "ape" or self.permutation == "learned"):
            what = "position 'ape'" if self.position == "ape" else "permutation 'learned'"
            raise ValueError(
                f"{what} has weights for each position: give max_position_embeddings, the longest sequence"
            )
