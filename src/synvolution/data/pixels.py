"""Images as sequences of grey levels, row by row."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class PixelProcessor:
    """Images to sequences of 256 grey levels (``input_ids``) or of numbers (``input_values``).

    Grey is ITU-R 601 luma, L = 0.299 R + 0.587 G + 0.114 B, as Pillow has it. Numbers are (level / 255 − mean) / std.
    All sequences have ``height * width`` positions, so that nothing is padded and all levels are free for the image.

    Args:
        height: rows of pixels.
        width: columns of pixels.
        mode: "token" for ids, "value" for numbers.
        mean: mean of the training pixels, from 0 to 1.
        std: standard deviation of the training pixels.

    Example:
        >>> processor = PixelProcessor(2, 2)
        >>> processor(np.array([[0, 255], [7, 8]], dtype=np.uint8))["input_ids"].tolist()
        [[0, 255, 7, 8]]
        >>> PixelProcessor(2, 2, mode="value")(np.full((2, 2), 255, np.uint8))["input_values"].tolist()
        [[1.0, 1.0, 1.0, 1.0]]
    """

    height: int
    width: int
    mode: Literal["token", "value"] = "token"
    mean: float = 0.5
    std: float = 0.5

    FILE: ClassVar[str] = "preprocessor_config.json"
    vocab_size: ClassVar[int] = 256
    pad_token_id: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(f"images of {self.height}×{self.width} pixels: both sides must be at least 1")
        if self.mode not in ("token", "value"):
            raise ValueError(f"mode is {self.mode!r}: choose token or value")
        if not self.std > 0:
            raise ValueError(f"std is {self.std}: it must be above 0")

    @property
    def length(self) -> int:
        """Positions of every sequence."""
        return self.height * self.width

    @property
    def column(self) -> str:
        """Name of the model's input: input_ids or input_values."""
        return "input_ids" if self.mode == "token" else "input_values"

    def __call__(self, images: Any) -> dict[str, NDArray[Any]]:
        """One image or a list of them (Pillow images, paths, or arrays of bytes) → (B, N)."""
        batch = images if isinstance(images, list | tuple) else [images]
        levels = np.stack([self.levels(image) for image in batch])
        return {self.column: levels.astype(np.int64) if self.mode == "token" else self.values(levels)}

    def levels(self, image: Any) -> NDArray[np.uint8]:
        """Grey levels of one image: (N,) bytes."""
        return np.asarray(grey(image, self.height, self.width)).reshape(-1)

    def values(self, levels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Numbers from grey levels, normalised."""
        return ((levels.astype(np.float32) / 255 - self.mean) / self.std).astype(np.float32)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the settings to preprocessor_config.json in a folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        content = {"processor_class": "PixelProcessor", **asdict(self)}
        (Path(folder) / self.FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> PixelProcessor:
        """Read the settings back."""
        path = Path(folder) / cls.FILE
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("processor_class", None) != "PixelProcessor":
            raise ValueError(f"{path} is not the file of a PixelProcessor")
        return cls(**content)


def grey(image: Any, height: int | None = None, width: int | None = None) -> NDArray[np.uint8]:
    """Grey levels (height, width) of a Pillow image, a path, or an array (H, W), (H, W, 1) or (H, W, 3) of bytes.

    Example:
        >>> grey(np.zeros((4, 6, 3), np.uint8), 2, 3).shape
        (2, 3)
    """
    if isinstance(image, str | Path):
        try:
            with Image.open(image) as opened:
                opened.load()
                return grey(opened, height, width)
        except PermissionError:
            raise
        except Exception as error:  # a damaged file can make Pillow raise nearly anything
            raise ValueError(f"{image}: not a readable image ({error})") from error
    if not isinstance(image, Image.Image):
        array = np.asarray(image)
        if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
            raise ValueError(
                f"an image as array has shape {array.shape} and type {array.dtype}: expected bytes (uint8) of shape "
                "(H, W), (H, W, 1), (H, W, 3) or (H, W, 4)"
            )
        image = Image.fromarray(array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array)
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"an image of mode {image.mode} has 16 bits or more for a pixel: convert it to 8 bits first")
    luma = image if image.mode == "L" else image.convert("RGB").convert("L")
    if height is not None and width is not None and luma.size != (width, height):
        luma = luma.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(luma, dtype=np.uint8)
