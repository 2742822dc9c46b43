"""Hugging Face models, registered with the Auto classes on import."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from synvolution.models.configuration import ConverterConfig
from synvolution.models.modeling import (
    ConverterForPairClassification,
    ConverterForSequenceClassification,
    ConverterModel,
    ConverterPreTrainedModel,
)

AutoConfig.register(ConverterConfig.model_type, ConverterConfig, exist_ok=True)
AutoModel.register(ConverterConfig, ConverterModel, exist_ok=True)
AutoModelForSequenceClassification.register(ConverterConfig, ConverterForSequenceClassification, exist_ok=True)

__all__ = [
    "ConverterConfig",
    "ConverterForPairClassification",
    "ConverterForSequenceClassification",
    "ConverterModel",
    "ConverterPreTrainedModel",
]
