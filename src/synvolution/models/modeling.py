"""Converter as Hugging Face models: the encoder, and classifiers of sequences and of pairs."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput
from transformers.utils.generic import can_return_tuple

from synvolution.models._checks import check_labels, check_mask, check_one, check_tokens, check_values
from synvolution.models.configuration import ConverterConfig
from synvolution.nn.block import ConverterBlock, RealBlock, block_around
from synvolution.nn.dropout import Dropout
from synvolution.nn.kernelution import Digraph
from synvolution.nn.mixers import build_mixer
from synvolution.nn.norm import ScaleNorm
from synvolution.nn.pooling import Pooling
from synvolution.nn.position import POSITIONS


class ConverterPreTrainedModel(PreTrainedModel):
    """What all Converter models share: configuration, initial weights, and loading from safetensors alone."""

    config_class = ConverterConfig
    base_model_prefix = "converter"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = False  # the loss is a mean over the batch, plus a penalty that does not depend on it

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """Load configuration and weights. Weights are read from safetensors files only: they cannot hold code."""
        if kwargs.get("use_safetensors") is False:
            raise ValueError("use_safetensors=False: weights are read from safetensors files only; leave it out")
        return super().from_pretrained(*args, **{**kwargs, "use_safetensors": True})

    def _init_weights(self, module: nn.Module) -> None:
        """Every module has its own rule; what was loaded stays (transformers marks it)."""
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        reset = getattr(module, "reset_parameters", None)
        if callable(reset) and not all(getattr(tensor, "_is_hf_initialized", False) for tensor in own):
            reset()


class ConverterEmbeddings(nn.Module):
    """Tokens or values plus position, ScaleNorm, dropout.

    Shape:
        input_ids (B, N) int64, or input_values (B, N) or (B, N, C), or inputs_embeds (B, N, D) → (B, N, D).
    """

    def __init__(self, config: ConverterConfig) -> None:
        super().__init__()
        self.features = config.input_features
        self.tokens: nn.Module
        if config.input_features is None:
            self.tokens = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        else:
            self.tokens = nn.Linear(config.input_features, config.hidden_size)
        extra = {
            "ape": {"max_length": config.max_position_embeddings},
            "rpe": {"num_layers": config.position_layers},
        }.get(config.position, {})
        self.position = POSITIONS[config.position](config.hidden_size, **cast(Any, extra))
        self.norm = ScaleNorm(config.hidden_size)
        self.dropout = Dropout(config.embedding_dropout)

    def forward(self, inputs: Tensor, mask: Tensor | None, embedded: bool = False) -> Tensor:
        """The first hidden state; ``embedded`` when the inputs are embeddings already."""
        if not embedded and self.features is None:
            inputs = check_tokens(inputs, cast(nn.Embedding, self.tokens).num_embeddings)
        elif not embedded:
            inputs = check_values(inputs, self.features)
        placed = self.position(inputs if embedded else self.tokens(inputs), mask)
        x: Tensor = self.norm(placed, rate=self.dropout.rate)
        return x


class ConverterModel(ConverterPreTrainedModel):
    """The encoder: embedding and blocks, one vector per position.

    Example:
        >>> model = ConverterModel(ConverterConfig(vocab_size=16, hidden_size=8, intermediate_size=16))
        >>> model(torch.randint(1, 16, (2, 30))).last_hidden_state.shape
        torch.Size([2, 30, 8])
    """

    def __init__(self, config: ConverterConfig) -> None:
        super().__init__(config)
        self.gradient_checkpointing = False
        self.embeddings = ConverterEmbeddings(config)
        self.blocks = nn.ModuleList(
            block_around(
                build_mixer(
                    config.mixer,
                    config.hidden_size,
                    max_length=config.max_position_embeddings,
                    **config.mixer_arguments(),
                ),
                config.hidden_size,
                config.intermediate_size,
                dropout=config.feedforward_dropout,
                bias=config.bias,
            )
            for _ in range(config.num_layers)
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding (or the linear map of values)."""
        return self.embeddings.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace it, e.g. after adding tokens."""
        self.embeddings.tokens = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        input_values: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> BaseModelOutput:
        """Encode a batch of sequences.

        Args:
            input_ids: (B, N) tokens.
            attention_mask: (B, N), 1 where a token is real; None: all are. Padding may be on either side.
            inputs_embeds: (B, N, D) instead of tokens.
            input_values: (B, N) or (B, N, C) real numbers, for a model with ``input_features``.
            output_hidden_states: also return the embedding and each block's output.
        """
        x, mask = self._embed(input_ids, attention_mask, inputs_embeds, input_values)
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        states: tuple[Tensor, ...] = (x,)
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                x = self._gradient_checkpointing_func(block.__call__, x, mask)
            else:
                x = block(x, mask)
            states = (*states, x) if wanted else (x,)
        return BaseModelOutput(last_hidden_state=cast(Any, x), hidden_states=cast(Any, states if wanted else None))

    def penalty(self) -> Tensor:
        """Kernel polynomial loss, the mean over the blocks; 0 for mixers without polynomial."""
        found = [cast(ConverterBlock | RealBlock, block).penalty() for block in self.blocks]
        return torch.stack(found).mean() if found else self.embeddings.norm.scale.new_zeros(())

    @torch.no_grad()
    def digraphs(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        input_values: Tensor | None = None,
    ) -> list[Digraph]:
        """The digraph that each block makes of these sequences, as dense matrices: for study, at small N.

        Example:
            >>> model = ConverterModel(ConverterConfig(vocab_size=16, hidden_size=8, num_layers=2)).eval()
            >>> [d.operator.shape for d in model.digraphs(torch.tensor([[3, 1, 4, 1, 5]]))]
            [torch.Size([1, 5, 5]), torch.Size([1, 5, 5])]
        """
        x, mask = self._embed(input_ids, attention_mask, inputs_embeds, input_values)
        found = []
        for block in self.blocks:
            digraph = getattr(block.mixer, "digraph", None)
            if digraph is None:
                raise ValueError(f"mixer {self.config.mixer!r} makes no digraph: kernelution and synvolution do")
            found.append(digraph(x, mask))
            x = block(x, mask)
        return found

    def _embed(
        self, input_ids: Tensor | None, attention_mask: Tensor | None, embeds: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        own = "input_ids" if self.config.input_features is None else "input_values"
        inputs = check_one(own, input_ids=input_ids, inputs_embeds=embeds, input_values=values)
        mask = check_mask(attention_mask, inputs)
        return self.embeddings(inputs, mask, embedded=embeds is not None), mask


class ClassificationHead(nn.Module):
    """Linear, LeakyReLU, dropout, linear: pooled vectors (B, F) → logits (B, classes)."""

    def __init__(self, features: int, config: ConverterConfig) -> None:
        super().__init__()
        self.first = nn.Linear(features, config.hidden_size)
        self.dropout = Dropout(config.classifier_dropout)
        self.out = nn.Linear(config.hidden_size, cast(int, config.num_labels))

    def forward(self, pooled: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.out(self.dropout(F.leaky_relu(self.first(pooled))))
        return logits


class _Classifier(ConverterPreTrainedModel):
    """Encoder, pooling, head; the loss (1−η) L_task + η L_KP."""

    #: Pooled vectors that the head sees, in units of one.
    combined = 1

    def __init__(self, config: ConverterConfig) -> None:
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.converter = ConverterModel(config)
        self.pooling = Pooling(config.pooling)
        self.classifier = ClassificationHead(self.combined * self.pooling.width(config.hidden_size), config)
        self.post_init()

    def digraphs(self, *args: Any, **kwargs: Any) -> list[Digraph]:
        """The digraph that each block makes, see :meth:`ConverterModel.digraphs`."""
        return self.converter.digraphs(*args, **kwargs)

    def _pooled(self, mask: Tensor | None, **inputs: Any) -> tuple[Tensor, Any]:
        out = self.converter(attention_mask=mask, return_dict=True, **inputs)
        x = out.last_hidden_state
        return self.pooling(x, None if mask is None else mask.to(torch.bool)), out.hidden_states

    def _output(self, logits: Tensor, labels: Tensor | None, hidden_states: Any) -> SequenceClassifierOutput:
        loss = None if labels is None else self._loss(logits, labels)
        return SequenceClassifierOutput(loss=cast(Any, loss), logits=cast(Any, logits), hidden_states=hidden_states)

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        task = self._task_loss(logits.float(), labels)
        if self.config.mixer != "kernelution" or not self.config.eta or not self.config.num_layers:
            return task
        return (1 - self.config.eta) * task + self.config.eta * self.converter.penalty()

    def _task_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        problem = self.config.problem_type or _problem(self.num_labels, labels)
        check_labels(labels, logits.shape, problem)
        if problem == "regression":
            return F.mse_loss(logits, labels.to(logits.dtype).reshape(logits.shape))
        if problem == "multi_label_classification":
            return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return F.cross_entropy(logits, labels)


class ConverterForSequenceClassification(_Classifier):
    """Classifier of sequences: encoder, masked pooling, Linear–LeakyReLU–dropout–Linear.

    Example:
        >>> config = ConverterConfig(vocab_size=16, hidden_size=8, intermediate_size=16, num_labels=10)
        >>> model = ConverterForSequenceClassification(config)
        >>> out = model(torch.randint(1, 16, (2, 30)), labels=torch.tensor([3, 7]))
        >>> out.logits.shape, out.loss.ndim
        (torch.Size([2, 10]), 0)
    """

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        input_values: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        """Logits (B, classes), and with labels the loss (1−η) L_task + η L_KP.

        Args:
            input_ids, attention_mask, inputs_embeds, input_values, output_hidden_states: as in :class:`ConverterModel`.
            labels: (B,) classes; (B,) or (B, outputs) real numbers for regression; (B, classes) of 0 and 1 for several
                labels at once. ``config.problem_type`` decides which, or the labels' type where it is not set.
        """
        inputs = {"input_ids": input_ids, "inputs_embeds": inputs_embeds, "input_values": input_values}
        pooled, states = self._pooled(attention_mask, output_hidden_states=output_hidden_states, **inputs)
        return self._output(self.classifier(pooled), labels, states)


class ConverterForPairClassification(_Classifier):
    """Classifier of pairs of sequences: one shared encoder, the head sees [u, v, u⊙v, u−v].

    Example:
        >>> config = ConverterConfig(vocab_size=16, hidden_size=8, intermediate_size=16)
        >>> model = ConverterForPairClassification(config)
        >>> first, second = torch.randint(1, 16, (2, 30)), torch.randint(1, 16, (2, 20))
        >>> model(first, input_ids_pair=second).logits.shape
        torch.Size([2, 2])
    """

    combined = 4

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        input_ids_pair: Tensor | None = None,
        attention_mask_pair: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        inputs_embeds_pair: Tensor | None = None,
        labels: Tensor | None = None,
        input_values: Tensor | None = None,
        input_values_pair: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """Logits (B, classes) of the pairs; arguments as in :class:`ConverterForSequenceClassification`, twice."""
        first = {"input_ids": input_ids, "inputs_embeds": inputs_embeds, "input_values": input_values}
        second = {"input_ids": input_ids_pair, "inputs_embeds": inputs_embeds_pair, "input_values": input_values_pair}
        if all(value is None for value in second.values()):
            raise ValueError("the second sequence is missing: give input_ids_pair (or its embeddings or values)")
        u, _ = self._pooled(attention_mask, **first)
        v, _ = self._pooled(attention_mask_pair, **second)
        if u.shape[0] != v.shape[0]:  # not len(), which a graph of any batch size cannot hold
            raise ValueError(f"{u.shape[0]} first and {v.shape[0]} second sequences: expected as many of each")
        return self._output(self.classifier(torch.cat((u, v, u * v, u - v), -1)), labels, None)


def _problem(num_labels: int, labels: Tensor) -> str:
    """The kind of problem, from the labels, as transformers' own models decide it."""
    if num_labels == 1:
        return "regression"
    return "multi_label_classification" if labels.is_floating_point() else "single_label_classification"
