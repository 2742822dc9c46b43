"""Learning curves as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def draw_curves(history: list[dict[str, Any]], path: Path) -> None:
    """Loss and accuracy over the steps, training and validation, from a trainer's log.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "curves.png"
        >>> draw_curves([{"step": 1, "loss": 2.0, "accuracy": 0.1}, {"step": 2, "eval_loss": 1.5}], path)
        >>> path.stat().st_size > 1000
        True
    """
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name, label in zip(figure.subplots(1, 2), ("loss", "accuracy"), ("loss", "accuracy"), strict=True):
        for key, title, style in ((name, "training", "-"), (f"eval_{name}", "validation", "o-")):
            points = [(entry["step"], entry[key]) for entry in history if key in entry]
            if points:
                axes.plot(*zip(*points, strict=True), style, label=title, markersize=3, linewidth=1.2)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    figure.savefig(path, dpi=120)
