"""The page of a folder of results: whole, the same each time, alone with itself, and harmless; seen by a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from synvolution import cli
from synvolution.experiments.mixer_step import Measurement
from synvolution.experiments.outcomes import write_outcome
from synvolution.experiments.report import TITLE, page_of, report
from synvolution.experiments.report_charts import curve_of, draw_bars, draw_costs, draw_curves, draw_scatter, spread_of
from synvolution.experiments.report_looks import looks_of, row_names
from synvolution.experiments.report_svg import FOREGROUND
from synvolution.experiments.results_folder import Results, read_results
from synvolution.nn import MIXERS
from tests.experiments.made_results import HOSTILE, run_of, small, write_costs

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"meta", "br", "img", "link", "input", "hr"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = small(tmp_path_factory.mktemp("results"))
    report(made)
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Collects tags, ids and references; every tag that is opened must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.titles = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += tag == "title" and self.open[-1] == "svg"
        for name, value in attrs:
            assert not name.startswith("on"), name
            self.ids += [value or ""] if name == "id" else []
            self.references += [value or ""] if name in ("href", "src", "action") else []
            self.references += [f"#{found}" for found in re.findall(r"url\(#(.+?)\)", value or "")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_and_has_every_part(page: str) -> None:
    found = Reader(page)
    assert not found.open
    assert len(found.ids) == len(set(found.ids))
    assert found.tags.count("figure") == found.titles
    # 5 published tasks, listops-quick twice, a hostile one: 4 charts each; 1 ablated task: 3; costs: 2; kernels: 1
    assert found.titles == 4 * (5 + 2 + 1) + 3 + 2 + 1
    for name in ("lra-quick", "lra-cpu", "ablations-cpu", "attention", "kernels", "runs"):
        assert f"table-{name}" in found.ids


def test_page_needs_nothing_and_runs_nothing(page: str) -> None:
    found = Reader(page)
    assert all(reference.startswith("#") and reference[1:] in found.ids for reference in found.references)
    assert not {"script", "iframe", "object", "embed", "link", "img", "form", "base"} & set(found.tags)
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    assert "Content-Security-Policy" in page
    assert "default-src &#x27;none&#x27;" in page


def test_names_from_data_are_text(page: str) -> None:
    assert HOSTILE[0] not in page
    assert HOSTILE[3] not in page
    assert "&lt;script&gt;document.title=" in page
    assert "a|b &amp; c_d" in page


def test_same_results_same_page_and_nothing_global_is_touched(folder: Path) -> None:
    before, found = dict(matplotlib.rcParams), read_results(folder)
    few = replace(found, outcomes=found.outcomes[:3])
    with matplotlib.rc_context({"font.size": 20.0, "axes.facecolor": "red"}):  # settings of the reader's own
        page = page_of(few)
    assert page_of(few) == page
    assert dict(matplotlib.rcParams) == before


def test_a_page_of_costs_alone(tmp_path: Path) -> None:
    write_costs(tmp_path, ["kernelution", "<b>"])
    report(tmp_path, tmp_path / "new/page.html")
    text = (tmp_path / "new/page.html").read_text(encoding="utf-8")
    assert "No runs yet" in text
    assert "<b>" not in text
    assert not Reader(text).open
    assert (tmp_path / "new/tables/attention.tex").exists()


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["synvolution", "report", *arguments])
    cli.main()


def test_command_and_its_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_outcome(tmp_path / "good", run_of("text", "fnet", 0.5))
    command(monkeypatch, str(tmp_path / "good"), "--out", str(tmp_path / "page.html"))
    assert f"written: {tmp_path / 'page.html'}" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    damaged = write_outcome(tmp_path / "bad", run_of("text", "fnet", 0.5))
    damaged.write_text("no json")
    for name, message in (("none", "is no folder"), ("empty", "holds no results"), ("bad", str(damaged))):
        with pytest.raises(SystemExit) as refused:
            command(monkeypatch, str(tmp_path / name))
        assert refused.value.code == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert message in told
        assert not (tmp_path / name / "report.html").exists()
    with pytest.raises(SystemExit):
        command(monkeypatch, str(tmp_path / "good"), "--out", str(tmp_path))
    assert "is a folder: give a file" in capsys.readouterr().err


def test_curves_over_epochs_where_a_finished_run_has_no_time() -> None:
    known, failed = run_of("text", "fnet", 0.5), run_of("text", "luna", None, cpu_seconds=None)
    resumed = run_of("text", "kernelution", 0.5, cpu_seconds=None)
    assert "over processor time</figcaption>" in page_of(Results((known, failed)))
    assert "over epochs</figcaption>" in page_of(Results((known, resumed)))


# the charts


def test_curves_are_the_histories() -> None:
    runs = [run_of("text", "fnet", 0.6), run_of("text", "kernelution", 0.8), run_of("text", "luna", None, history=[])]
    figure = draw_curves(runs, looks_of([]), "step")
    assert figure is not None
    assert len(figure.axes[0].lines) == 2
    drawn = figure.axes[0].lines[-1]  # Converter's, thick and on top
    assert drawn.get_color() == FOREGROUND
    measured = [entry for entry in runs[1].history if "validation_accuracy" in entry]
    assert np.allclose(drawn.get_xdata(), [entry["step"] for entry in measured])
    assert np.allclose(drawn.get_ydata(), [100 * entry["validation_accuracy"] for entry in measured])
    minutes = [x for x, _ in curve_of(runs[0], "minutes")]
    assert minutes[-1] == pytest.approx((runs[0].cpu_seconds or 0) / 60)  # its last step is the last of the run
    assert curve_of(run_of("text", "fnet", 0.6, cpu_seconds=None), "minutes") == []
    nan = [{"step": 1, "validation_accuracy": float("nan")}, {"step": 2}]
    assert draw_curves([run_of("text", "fnet", 0.5, history=nan)], looks_of([]), "epoch") is None


def test_points_bars_and_costs() -> None:
    runs = [run_of("text", "fnet", 0.6, cpu_seconds=60.0), run_of("text", "luna", None)]
    figure = draw_scatter(runs, looks_of([]), "minutes", printed=86.44)
    assert figure is not None
    points, line = figure.axes[0].lines[0], figure.axes[0].lines[-1]
    assert (points.get_xydata().tolist(), line.get_ydata()[0]) == ([[1.0, 60.0]], 86.44)  # type: ignore[union-attr,index]
    assert draw_scatter([runs[1]], looks_of([]), "parameters") is None
    seeds = [run_of("text", "fnet", accuracy, seed=k) for k, accuracy in enumerate((0.5, 0.6, 0.7))]
    assert spread_of(seeds) == pytest.approx((60, 50, 70))
    bars = draw_bars([*seeds, run_of("text", "nope", 0.3)], looks_of([]), {"nope": 36.44})
    assert bars is not None
    assert [bar.get_width() for bar in bars.axes[0].patches] == pytest.approx([30, 60])  # type: ignore[attr-defined]
    assert draw_bars([runs[1]], looks_of([]), {}) is None
    steps = [Measurement("fnet", 10, "ok", 1.0, 2**20), Measurement("luna", 10, "out of memory")]
    costs = draw_costs(steps, looks_of([]), "memory")
    assert costs is not None
    assert len(costs.axes[0].lines) == 1
    assert draw_costs(steps[1:], looks_of([]), "time") is None


def test_every_row_has_a_look_of_its_own() -> None:
    names = [*row_names(), *MIXERS, "mine"]
    looks = looks_of(names)
    drawn = [(look.colour, look.dashes, look.marker) for row, look in looks.items() if row in MIXERS]
    assert len(drawn) == len(set(drawn)) == len(MIXERS)
    assert set(names) <= looks.keys()


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    page = page_of(Results((run_of("$x^2$ $", "a$b$", 0.5, table="ablations"),)))
    assert "$x^2$ $ (no published numbers)" in page
    assert ">a$b$</text>" in page


# in a browser


def browse(folder: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    quiet = ("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-gpu")
    log = ("--enable-logging=stderr", "--v=0", f"--user-data-dir={folder / 'profile'}")
    call = [BROWSER, "--headless=new", "--no-sandbox", *quiet, *log, *options, page.as_uri()]
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=120, cwd=folder)


@pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on PATH")
def test_a_browser_shows_the_page(folder: Path, tmp_path: Path) -> None:
    shown = browse(tmp_path, folder / "report.html", "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert f"<title>{TITLE}</title>" in shown.stdout
    assert shown.stdout.count("<figure") == 38
    assert "&lt;script&gt;document.title='owned'" in shown.stdout
    for width in (1280, 500):
        browse(tmp_path, folder / "report.html", f"--window-size={width},3000", f"--screenshot={tmp_path / 'page.png'}")
        pixels = imread(tmp_path / "page.png")[..., :3]
        assert pixels.shape[1] == width
        assert all(part.std() > 0.05 for part in np.split(pixels, 3))  # each third of it has something on it


@pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on PATH")
def test_the_policy_stops_a_script_and_the_log_would_tell(folder: Path, tmp_path: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{HOSTILE[0]}</body>"), encoding="utf-8")
    shown = browse(tmp_path, tmp_path / "page.html", "--dump-dom")
    assert f"<title>{TITLE}</title>" in shown.stdout
    assert "CONSOLE" in shown.stderr
