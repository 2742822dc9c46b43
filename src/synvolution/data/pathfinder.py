"""Pathfinder: two dashed curves, two markers. Are both markers on the same curve?

Drawn after the description of the benchmark (Linsley et al. 2018; Tay et al. 2021) with its settings, by a generator of
our own that keeps the geometry: two target curves grow from seeds near the middle, paddle by paddle, each paddle
turned against the last by an angle Δ with density ∝ cos²(continuity · Δ); paddles that do not follow each other keep
about two margins apart. Shorter curves fill the rest. One marker is the beginning of a target curve, the other the end
of the same (class 1) or of the other (class 0). Where a target curve gets stuck it is taken back a few paddles; the
original begins the image anew, which for long curves takes hundreds of trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from synvolution.data.parallel import ordered_map

Points = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: Paddles of a target curve, and the folder of the published data, by difficulty.
CONTOUR_LENGTH = {"easy": 6, "middle": 9, "hard": 14}
FOLDER = {"easy": "curv_baseline", "middle": "curv_contour_length_9", "hard": "curv_contour_length_14"}

#: Images drawn per seed. Part of what a seed means.
IMAGES_PER_BATCH = 100

#: A curve that is stuck is taken back by up to so many paddles.
BACK = 4


@dataclass(frozen=True)
class PathfinderRule:
    """Settings of the images; lengths in pixels.

    Args:
        size: side of the image.
        contour_length: paddles of a target curve.
        paddle_length: length of a paddle.
        thickness: width of a paddle.
        margins: free space around a paddle, one chosen for each image.
        marker_radius: radius of the two markers.
        seed_distance: distance between the beginnings of the two target curves.
        continuity: how straight curves are.
        distractor_paddles: paddles of all distractors together.
        contrast: brightness of a paddle that covers its pixel, against 1 for a marker.
        padding: free border.
        antialias: finer grid on which is drawn.
    """

    size: int
    contour_length: int
    paddle_length: float
    thickness: float
    margins: tuple[int, ...]
    marker_radius: float
    seed_distance: float
    continuity: float
    distractor_paddles: int
    contrast: float
    padding: int = 1
    antialias: int = 2

    @property
    def distractor_length(self) -> int:
        """Paddles of a distractor: a third of a target curve."""
        return self.contour_length // 3

    @property
    def distractors(self) -> int:
        """Number of distractors tried."""
        return self.distractor_paddles // self.distractor_length


def rule_for(size: int, difficulty: str) -> PathfinderRule:
    """The benchmark's settings for 32 and 128 pixels; those for 64 lie between and are ours.

    Example:
        >>> rule_for(32, "hard").contour_length, rule_for(32, "hard").distractors
        (14, 5)
    """
    length = CONTOUR_LENGTH[difficulty]
    if size == 32:
        return PathfinderRule(size, length, 2, 0.5, (1,), 1.5, 7, 1.0, 20, 2 * 0.75)
    if size == 64:
        return PathfinderRule(size, length, 3, 1.0, (1, 2), 2.0, 12, 1.4, 27, 1.0)
    if size == 128:
        return PathfinderRule(size, length, 5, 1.5, (2, 3), 3.0, 20, 1.8, 35, 0.9)
    raise ValueError(f"image_size is {size}: Pathfinder has images of 32, 64 or 128 pixels")


@dataclass
class Scene:
    """What is in an image: curves as paddles (k, 2 ends, 2), x before y; the two targets come first."""

    curves: list[Points] = field(default_factory=list)
    markers: Points = field(default_factory=lambda: np.zeros((2, 2)))
    label: int = 0
    margin: int = 1


class _Pencil:
    """Draws random paddles where there is room. Points are complex numbers here: x + iy, one pixel long."""

    def __init__(self, rule: PathfinderRule, margin: int, source: np.random.Generator) -> None:
        self.rule, self.margin, self.source = rule, margin, source
        self.clearance = clearance(rule, margin)
        self.along = np.linspace(0, rule.paddle_length, math.ceil(rule.paddle_length) + 1)  # at most a pixel apart
        # Angles with density cos²(continuity · angle): the inverse of the distribution, from a table.
        self.turns = np.linspace(-1, 1, 513) * min(math.pi, math.pi / (2 * rule.continuity))
        weight = np.cos(rule.continuity * self.turns) ** 2
        self.share = np.cumsum(weight) / weight.sum()

    def anywhere(self, number: int, border: float) -> Complex:
        """Random points of the image, at least so far from its border."""
        x, y = border + self.source.random((2, number)) * (self.rule.size - 1 - 2 * border)
        return x + 1j * y

    def any_direction(self, number: int) -> Complex:
        """Random directions: numbers of absolute value 1."""
        return np.exp(2j * math.pi * self.source.random(number))

    def first_free(self, starts: Complex, directions: Complex, obstacles: Complex) -> Complex | None:
        """The points of the first of some paddles that is in the image and far enough from the obstacles, or None."""
        points = starts[:, None] + directions[:, None] * self.along
        ends = points[:, (0, -1)]
        low, high = self.rule.padding, self.rule.size - 1 - self.rule.padding
        free = (np.minimum(ends.real, ends.imag).min(1) >= low) & (np.maximum(ends.real, ends.imag).max(1) <= high)
        apart = points.reshape(-1, 1) - obstacles
        squares = apart.real**2 + apart.imag**2
        free &= squares.reshape(len(points), -1).min(1, initial=math.inf) >= self.clearance**2
        number = int(free.argmax())
        return points[number] if free[number] else None

    def after(self, last: Complex, obstacles: Complex) -> Complex | None:
        """A paddle that continues a curve after its last paddle, or None where no turn has room."""
        ahead = (last[-1] - last[0]) / self.rule.paddle_length
        directions = ahead * np.exp(1j * np.interp(self.source.random(16), self.share, self.turns))
        return self.first_free(last[-1] + self.margin * (ahead + directions), directions, obstacles)


def clearance(rule: PathfinderRule, margin: int) -> float:
    """Least distance between the middle lines of paddles that do not follow each other.

    Twice the margin and once the thickness would keep the margins around two paddles apart; half a thickness may
    overlap, as the soft edges of the original allow.

    Example:
        >>> clearance(rule_for(32, "hard"), 1)
        2.25
    """
    return 2 * margin + rule.thickness / 2


def scene(rule: PathfinderRule, label: int, source: np.random.Generator) -> Scene:
    """A random image of a class, as geometry.

    Example:
        >>> found = scene(rule_for(32, "hard"), 1, np.random.default_rng(0))
        >>> len(found.curves[0]), len(found.curves[1]), found.label
        (14, 14, 1)
    """
    curves = None
    while curves is None:
        pencil = _Pencil(rule, rule.margins[int(source.random() * len(rule.margins))], source)
        curves = _targets(pencil)
    for _ in range(rule.distractors):
        curves += _distractor(pencil, np.concatenate(curves, axis=None))
    first = int(source.random() * 2)
    markers = np.array((curves[first][0, 0], curves[first if label else 1 - first][-1, -1]))
    return Scene([_plane(curve[:, (0, -1)]) for curve in curves], _plane(markers), label, pencil.margin)


def _plane(points: Complex) -> Points:
    return np.stack((points.real, points.imag), -1)


def _targets(pencil: _Pencil) -> list[Complex] | None:
    """Two curves (paddles, points) that grow in turn; one that gets stuck is taken back a few paddles."""
    rule, source = pencil.rule, pencil.source
    curves = np.zeros((2, rule.contour_length, len(pencil.along)), np.complex128)
    border = min(2 * rule.seed_distance, rule.size / 2 - 1)
    seed = pencil.anywhere(1, border)
    for number in range(2):
        paddle = pencil.first_free(seed, pencil.any_direction(1), curves[:number, 0].reshape(-1))
        if paddle is None:
            return None
        curves[number, 0] = paddle
        seed = seed + rule.seed_distance * pencil.any_direction(1)
    length = [1, 1]
    for _ in range(20 * rule.contour_length):  # steps forward and back, before all is begun anew
        if length[1] == rule.contour_length:
            return list(curves)
        number = int(length[1] < length[0])
        own, other = curves[number], curves[1 - number]
        obstacles = np.concatenate((own[: length[number] - 1], other[: length[1 - number]]), axis=None)
        paddle = pencil.after(own[length[number] - 1], obstacles)
        if paddle is not None:
            own[length[number]] = paddle
            length[number] += 1
        else:
            length = [max(1, length[number] - 1 - int(source.random() * BACK))] * 2
    return None


def _distractor(pencil: _Pencil, obstacles: Complex) -> list[Complex]:
    """One more curve (paddles, points) if there is room for it: a list of one or none."""
    for _ in range(5):
        paddle = pencil.first_free(pencil.anywhere(32, pencil.rule.padding), pencil.any_direction(32), obstacles)
        curve: list[Complex] = []
        while paddle is not None:
            curve.append(paddle)
            if len(curve) == pencil.rule.distractor_length:
                return [np.stack(curve)]
            paddle = pencil.after(curve[-1], np.concatenate((obstacles, *curve[:-1])))
    return []


def draw(found: Scene, rule: PathfinderRule) -> NDArray[np.uint8]:
    """The image (size, size) of a scene: drawn on a finer grid, made smaller, scaled to 0 … 255."""
    fine = rule.size * rule.antialias
    paddles, markers = Image.new("L", (fine, fine)), Image.new("L", (fine, fine))
    pencil, scale = ImageDraw.Draw(paddles), rule.antialias
    width = max(1, round(rule.thickness * scale))
    for curve in found.curves:
        for paddle in (curve + 0.5) * scale:
            pencil.line([tuple(paddle[0]), tuple(paddle[1])], fill=255, width=width)
    pencil = ImageDraw.Draw(markers)
    for x, y in (found.markers + 0.5) * scale:
        radius = rule.marker_radius * scale
        pencil.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    small = [
        np.asarray(one.resize((rule.size, rule.size), Image.Resampling.LANCZOS), float) for one in (paddles, markers)
    ]
    image = np.maximum(small[0] * rule.contrast, small[1])
    return np.round(image * (255 / image.max())).astype(np.uint8)


def generate(
    rule: PathfinderRule, samples: int, seed: int, workers: int = 1
) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Different images (size, size) and their classes, in turn 0 and 1.

    Example:
        >>> [(image.shape, label) for image, label in generate(rule_for(32, "easy"), 2, seed=0)]
        [((32, 32), 0), ((32, 32), 1)]
    """
    batches = ((rule, seed, number) for number in range(-(-samples // IMAGES_PER_BATCH)))
    left = samples
    for images in ordered_map(_batch, batches, workers):
        yield from images[:left]
        left -= len(images)


def _batch(rule: PathfinderRule, seed: int, number: int) -> list[tuple[NDArray[np.uint8], int]]:
    key = (rule.size, rule.contour_length, number)
    source = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
    return [(draw(scene(rule, index % 2, source), rule), index % 2) for index in range(IMAGES_PER_BATCH)]
