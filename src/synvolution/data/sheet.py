"""Contact sheets: some images of a data set on one picture, with their classes."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from synvolution.data.pixels import PixelProcessor
from synvolution.data.prepared import Prepared


def is_image(data: Prepared) -> bool:
    """Whether the rows are images."""
    return isinstance(data.processor, PixelProcessor)


def rows_in_turn(data: Prepared, number: int) -> list[int]:
    """Numbers of so many training rows: the first of each class, the second of each, and so on."""
    labels = np.array(data.splits["train"]["label"])
    of_class = [np.flatnonzero(labels == label)[:number].tolist() for label in range(len(data.classes))]
    turns = [rows[turn] for turn in range(max(map(len, of_class))) for rows in of_class if turn < len(rows)]
    return turns[:number]


def contact_sheet(data: Prepared, number: int = 24, across: int = 6) -> Image.Image:
    """The first images of each class in turn, enlarged, with the name of the class below."""
    processor = data.processor
    assert isinstance(processor, PixelProcessor)
    train = data.splits["train"]
    chosen = rows_in_turn(data, number)
    scale = max(1, 128 // max(processor.height, processor.width))
    width, height, text = processor.width * scale, processor.height * scale, 14
    down = -(-len(chosen) // across)
    sheet = Image.new("L", (across * (width + 8), down * (height + text + 8)), 60)
    pencil = ImageDraw.Draw(sheet)
    for place, row in enumerate(chosen):
        x, y = 4 + place % across * (width + 8), 4 + place // across * (height + text + 8)
        levels = np.array(train[row][processor.column])
        if processor.mode == "value":
            levels = np.round((levels * processor.std + processor.mean) * 255)
        image = Image.fromarray(levels.astype(np.uint8).reshape(processor.height, processor.width))
        sheet.paste(image.resize((width, height), Image.Resampling.NEAREST), (x, y))
        pencil.text((x + 2, y + height + 1), data.classes[train[row]["label"]], fill=255)
    return sheet
