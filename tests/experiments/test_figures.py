"""The figures: right numbers, whole and legible drawings, the same files every time."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
import tyro
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from transformers import BertConfig, PreTrainedModel

from synvolution.data.tokenizers import byte_tokenizer
from synvolution.experiments import figures as command
from synvolution.experiments.figure_architecture import draw_architecture
from synvolution.experiments.figure_digraph import MOST_TOKENS, digraphs_of, draw_digraph, spell
from synvolution.experiments.figure_gibbs import KERNELS, approximate_step, draw_gibbs
from synvolution.experiments.figure_kernelution import draw_kernelution
from synvolution.experiments.figures import FIGURES, figures
from synvolution.models import (
    ConverterConfig,
    ConverterForPairClassification,
    ConverterForSequenceClassification,
    ConverterModel,
)
from synvolution.nn import Digraph, Kernelution
from synvolution.spectral import DAMPINGS

STILL = ("gibbs", "architecture", "kernelution")
DRAWINGS: dict[str, Callable[[], Figure]] = {
    "gibbs": draw_gibbs,
    "architecture": draw_architecture,
    "kernelution": draw_kernelution,
    "digraph": lambda: draw_digraph(digraph_of(7, heads=3), ["the", "a$b", "c$d", "x_1", "^", " ", "中"], "title"),
}


def digraph_of(n: int, heads: int = 1, batch: int = 1) -> Digraph:
    return Kernelution(12, num_heads=heads, reach="spread").digraph(torch.randn(batch, n, 12))


def texts(figure: Figure) -> list[Text]:
    return [t for t in figure.findobj(Text) if isinstance(t, Text) and t.get_text().strip() and t.get_visible()]


@pytest.mark.parametrize("what", STILL)
def test_files_are_whole_and_the_same_every_time(what: str, tmp_path: Path) -> None:
    figures(what, out=tmp_path / "a")  # type: ignore[arg-type]
    with matplotlib.rc_context({"font.size": 20.0, "figure.facecolor": "red"}):  # settings of the reader's own
        figures(what, out=tmp_path / "b/c")  # type: ignore[arg-type]
    for kind in ("png", "svg"):
        first, second = (tmp_path / folder / f"{what}.{kind}" for folder in ("a", "b/c"))
        assert first.read_bytes() == second.read_bytes()
        assert 10_000 < first.stat().st_size < 300_000
    pixels = imread(tmp_path / "a" / f"{what}.png")[..., :3]
    assert pixels.shape[1] == 1440
    assert pixels.mean() > 0.7  # a light background …
    assert pixels.std() > 0.1  # … and something on it
    assert ElementTree.parse(tmp_path / "a" / f"{what}.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_text_is_cut_or_covers_another(name: str) -> None:
    figure = DRAWINGS[name]()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    shown = [t for t in texts(figure) if t.get_window_extent().width]
    boxes = [t.get_window_extent() for t in shown if t.axes is None or t.axes.axison or t in t.axes.texts]
    assert len(boxes) > 10
    right, top = canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= 0, box
        assert box.y0 >= 0, box
        assert box.x1 <= right, box
        assert box.y1 <= top, box
    pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    covered = [
        (a, b) for a, b in pairs if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]
    assert not covered


def factors(damping: str, order: int) -> np.ndarray:
    """The table kernel_func once more, in numpy."""
    k, last = np.arange(order + 1), order + 1
    ratio = k / last
    angle = np.pi / (order + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        table = {
            "dirichlet": np.ones(last),
            "fejer": 1 - ratio,
            "jackson": ((order + 2 - k) * np.cos(k * angle) + np.sin(k * angle) / np.tan(angle)) / (order + 2),
            "lanczos": np.sinc(ratio) ** 3,
            "lorentz": np.sinh(4 * (1 - ratio)) / np.sinh(4),
            "vekic": 0.5 - 0.5 * np.tanh((ratio - 0.5) / (ratio * (1 - ratio))),
            "wang": np.exp(-((2 * ratio) ** 2)),
        }
    return np.asarray(table[damping])


@pytest.mark.parametrize("order", [8, 31])
@pytest.mark.parametrize("damping", KERNELS)
def test_numbers_of_the_gibbs_figure(damping: str, order: int) -> None:
    """Against numpy's own interpolation at the same nodes, on another grid."""
    nodes = np.polynomial.chebyshev.chebpts1(order + 1)
    coefficients = np.polynomial.chebyshev.chebfit(nodes, np.sign(np.round(nodes, 12)), order)
    x = np.linspace(-1, 1, 16_001)
    values = np.polynomial.chebyshev.chebval(x, factors(damping, order) * coefficients)
    found = approximate_step(damping, order)
    assert found.overshoot == pytest.approx(max(values.max() - 1, 0), abs=1e-5)
    risen = x[(x > 0) & (values >= 0.9)]
    assert found.rise == pytest.approx(risen[0] if len(risen) else np.nan, abs=3e-4, nan_ok=True)


def test_gibbs_figure_shows_every_kernel_and_its_numbers() -> None:
    assert KERNELS.keys() == DAMPINGS.keys()
    figure = draw_gibbs(20)
    for axis, damping in zip(figure.axes, KERNELS, strict=False):
        found = approximate_step(damping, 20)
        assert f"{100 * found.overshoot:.1f} %" in axis.texts[0].get_text()
        drawn = np.asarray(axis.lines[-1].get_ydata())
        assert np.array_equal(drawn, found.values.numpy())
        assert np.allclose(drawn, -drawn[::-1])  # a step is odd, also where a node lies on it
    with pytest.raises(ValueError, match="K ≥ 1"):
        draw_gibbs(0)
    with pytest.raises(ValueError, match="choose one of dirichlet"):
        approximate_step("hann", 3)


def test_nothing_global_is_touched(tmp_path: Path) -> None:
    settings, state = dict(matplotlib.rcParams), torch.get_rng_state()
    figures(out=tmp_path)
    assert dict(matplotlib.rcParams) == settings
    assert torch.equal(torch.get_rng_state(), state)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{kind}" for name in STILL for kind in ("png", "svg")}


def test_digraph_draws_weights_phases_and_tokens() -> None:
    digraph, tokens = digraph_of(6, heads=2), ["a", "$x", "y$", "\\alpha", " ", "\n"]
    figure = draw_digraph(digraph, tokens, "costs $5 or $6")
    for head, maps in enumerate(a for a in figure.axes if a.images and a.get_title()):
        drawn = np.asarray(maps.images[0].get_array())
        assert np.array_equal(drawn, digraph.operator[0, head].detach().abs().clamp_min(1e-3).numpy())
        assert [t.get_text() for t in maps.get_xticklabels()] == ["a", "$x", "y$", "\\alpha", "␣", "↵"]
        assert not any(t.get_parse_math() for t in [*maps.get_xticklabels(), *maps.get_yticklabels()])
    circles = [a for a in figure.axes if a.patches]
    assert len(circles) == 2
    for head, circle in enumerate(circles):
        x, y = circle.lines[-1].get_data()
        assert np.allclose(np.arctan2(y, x), digraph.eigenphases[0, head].detach().numpy(), atol=1e-5)
    figure.savefig(io.BytesIO())  # a lone $ would be refused here, were it mathematics


def test_labels_thin_out_and_the_longest_is_drawn() -> None:
    maps = draw_digraph(digraph_of(MOST_TOKENS), ["t"] * MOST_TOKENS, "").axes[0]
    ticks = maps.get_xticks()
    assert 20 < len(ticks) < 60
    assert len(set(np.diff(ticks))) == 1


def test_spelling() -> None:
    assert spell("\x00\u200b") == "\\x00\\u200b"
    assert spell("中") == "\\u4e2d"
    assert spell("Ġthe") == "Ġthe"
    assert len(spell("a" * 40)) == 12


def test_digraphs_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="3 tokens for a digraph of 5 positions"):
        draw_digraph(digraph_of(5), list("abc"), "")
    with pytest.raises(ValueError, match="one sequence alone"):
        draw_digraph(digraph_of(5, batch=2), list("abcde"), "")
    with pytest.raises(ValueError, match="513 tokens: a digraph is drawn for 1 to 512"):
        draw_digraph(digraph_of(513), ["t"] * 513, "")
    with pytest.raises(ValueError, match="is no folder"):
        digraphs_of(Path("nowhere"), "text")


def saved(folder: Path, kind: type[PreTrainedModel], **settings: Any) -> PreTrainedModel:
    tokenizer = byte_tokenizer()
    model: PreTrainedModel = kind(ConverterConfig(vocab_size=len(tokenizer), hidden_size=12, **settings))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("kind", [ConverterModel, ConverterForSequenceClassification, ConverterForPairClassification])
def test_digraphs_of_a_saved_model(kind: type[PreTrainedModel], tmp_path: Path) -> None:
    model = saved(tmp_path / "model", kind, num_layers=2, num_heads=2)
    tokens, found = digraphs_of(tmp_path / "model", "a $é")
    assert [spell(token) for token in tokens] == ["a", "␣", "$", "\\xc3", "\\xa9"]
    expected = model.digraphs(torch.tensor([[98, 33, 37, 196, 170]]))  # type: ignore[operator]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours.operator, theirs.operator)
    figures("digraph", out=tmp_path, model=tmp_path / "model", text="a $é")
    assert (tmp_path / "digraph-layer2.svg").exists()


def test_texts_and_models_that_make_no_digraph(tmp_path: Path) -> None:
    saved(tmp_path, ConverterForSequenceClassification, mixer="none")
    for text, message in (("", "0 tokens"), ("a" * 513, "513 tokens"), ("abc", "makes no digraph")):
        with pytest.raises(ValueError, match=message):
            digraphs_of(tmp_path, text)
    BertConfig(architectures=["BertModel"]).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a BertModel: only a Converter"):
        digraphs_of(tmp_path, "abc")


def test_command_draws_each_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def loaded(directory: Path, text: str) -> tuple[list[str], list[Digraph]]:
        asked.append((directory, text))
        return list(text), [digraph_of(len(text)), digraph_of(len(text), heads=2)]

    monkeypatch.setattr(command, "digraphs_of", loaded)
    figures("digraph", out=tmp_path, model=Path("somewhere"), text="a $ b")
    assert asked == [(Path("somewhere"), "a $ b")]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"digraph-layer{layer}.{kind}" for layer in (1, 2) for kind in ("png", "svg")}
    monkeypatch.setattr(command, "FIGURES", {"digraph": FIGURES["digraph"]})
    figures(out=tmp_path / "all", model=Path("somewhere"), text="abc")  # all, and a model: its digraphs are among them
    assert len(list((tmp_path / "all").iterdir())) == 4


def test_bad_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        ValueError, match="unknown figure 'gib': choose one of gibbs, architecture, kernelution, digraph"
    ):
        figures("gib")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give --model DIR and --text TEXT"):
        figures("digraph", text="abc")
    with pytest.raises(ValueError, match="leave them out with gibbs"):
        figures("gibbs", text="abc")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file: give a folder"):
        figures("gibbs", out=tmp_path / "file")
    with pytest.raises(SystemExit):
        tyro.cli(figures, args=["gib"])
    assert "gibbs" in capsys.readouterr().err
