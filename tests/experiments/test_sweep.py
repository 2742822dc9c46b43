"""Sweeps: they start from the recipe, go on after a kill, are shared by workers, and keep their limits."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from optuna.trial import FrozenTrial, TrialState

from synvolution.data.base import cache_folder
from synvolution.experiments import sweep_study, sweep_worker
from synvolution.experiments.sweep_study import Place, heartbeats_allowed, open_study, take_over, trials_of
from synvolution.experiments.sweep_trial import OUT_OF_MEMORY, PRUNED, Judge, Order, Outcome, run_trial
from synvolution.models.options import ModelOptions
from synvolution.recipes import RECIPES, Recipe, find_recipe
from synvolution.training.commands import parse_recipe
from tests.training.test_commands import command

TINY = ["listops-quick", "--data.samples", "240", "--model.hidden-size", "8", "--model.intermediate-size", "16"]
TINY += ["--training.epochs", "1", "--training.batch-size", "32"]
SEARCH = ["--search", "learning_rate", "dropout"]
SETTINGS = {"sampler": "tpe", "pruner": "none", "startup": 3, "seed": 0}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def here(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNVOLUTION_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.fixture(autouse=True)
def _allowed() -> Iterator[None]:
    with heartbeats_allowed():
        yield


def trials_in(out: Path) -> list[FrozenTrial]:
    """All trials of a folder's study, those that do not count included."""
    return optuna.load_study(study_name=out.name, storage=f"sqlite:///{out / 'study.db'}").trials


def rows_of(out: Path) -> list[dict[str, str]]:
    with open(out / "trials.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def pretend(monkeypatch: pytest.MonkeyPatch, outcome: Outcome | None = None) -> None:
    """Trials that take no time: the accuracy is the higher, the nearer the rate is to 0.01."""

    def run(order: Order, judge: Judge) -> Outcome:
        recipe = Recipe.from_json(order.recipe)
        return outcome or Outcome(value=1 - abs(recipe.training.learning_rate - 0.01) * 50)

    monkeypatch.setattr(sweep_worker, "run_trial", run)


def test_a_real_sweep_starts_from_the_recipe_and_leaves_a_recipe(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, "--trials", "3") == 0
    out = here / "outputs" / "sweep-listops-quick"
    trials = trials_in(out)
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
    assert trials[0].params == {"learning_rate": 0.003, "dropout": 0.1}
    assert len({trial.params["learning_rate"] for trial in trials}) == 3
    assert [float(row["accuracy"]) for row in rows_of(out)] == [trial.value for trial in trials]
    best = max(trials, key=lambda trial: trial.value or 0)
    found = find_recipe(str(out / "best.json"))
    assert found.training.learning_rate == best.params["learning_rate"]
    assert found.model.value_dropout == found.model.embedding_dropout == best.params["dropout"]
    assert (found.data.samples, found.model.hidden_size, found.training.epochs) == (240, 8, 1)
    _, _, arguments = parse_recipe([str(out / "best.json")], "train")
    assert (arguments.training, arguments.model, arguments.options) == (found.training, found.model, found.data)
    for name in ("history.png", "importances.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "synvolution train outputs/sweep-listops-quick/best.json" in printed
    assert "validation accuracy" in printed
    # training the best gives the accuracy that the trial had
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    assert command(monkeypatch, "train", str(out / "best.json"), "--out", "run") == 0
    scores = json.loads((here / "run" / "results.json").read_text())["scores"]
    assert scores["validation"]["accuracy"] == pytest.approx(best.value, abs=0.051)  # one of 20 rows: other threads


def test_the_search_finds_better_than_the_start_and_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch)
    arguments = ["sweep", *TINY, *SEARCH, "--out", "one"]
    assert command(monkeypatch, *arguments, "--trials", "5") == 0
    assert len(trials_in(here / "one")) == 5
    assert command(monkeypatch, *arguments, "--trials", "15") == 0
    assert "5 of them done before" in capsys.readouterr().out
    trials = trials_in(here / "one")
    assert len(trials) == 15
    values = [trial.value or 0 for trial in trials]
    assert max(values) > values[0] + 0.1
    assert (
        find_recipe("one/best.json").training.learning_rate == trials[values.index(max(values))].params["learning_rate"]
    )
    assert command(monkeypatch, *arguments, "--trials", "15") == 0  # nothing is left to do
    assert len(trials_in(here / "one")) == 15
    # an undisturbed sweep tries the same
    assert command(monkeypatch, *arguments[:-1], "two", "--trials", "15") == 0
    assert [trial.params for trial in trials_in(here / "two")] == [trial.params for trial in trials]


@pytest.mark.parametrize("sampler", ["gp", "random"])
def test_other_samplers(sampler: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    more = ["--sampler", sampler, "--startup", "3", "--pruner", "hyperband", "--out", "one"]
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, "--trials", "6", *more) == 0
    values = [trial.value or 0 for trial in trials_in(here / "one")]
    assert len(values) == 6
    assert len(set(values)) > 4
    assert sampler != "gp" or sum(values[3:]) > sum(values[:3])


def test_a_grid_tries_every_combination_once_by_two_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    search = ["--search", "mixer=kernelution,none", "seed=0,1,2", "--sampler", "grid", "--workers", "2"]
    assert command(monkeypatch, "sweep", *TINY, *search, "--out", "one") == 0
    trials = [trial for trial in trials_in(here / "one") if sweep_study.counts(trial)]
    points = Counter((trial.params["mixer"], trial.params["seed"]) for trial in trials)
    assert points == Counter((mixer, seed) for mixer in ("kernelution", "none") for seed in range(3))


def test_another_study_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch)
    arguments = ["sweep", *TINY, *SEARCH, "--trials", "2", "--out", "one"]
    assert command(monkeypatch, *arguments) == 0
    capsys.readouterr()
    for change in (["--training.epochs", "2"], ["--seed", "1"], ["--data.samples", "250"]):
        assert command(monkeypatch, *arguments, *change) == 2
        assert "holds another study" in capsys.readouterr().err
    # the same through a shared database
    shared = ["--storage", f"sqlite:///{here}/one/study.db", "--study", "one"]
    assert command(monkeypatch, *arguments[:-1], "two", *shared, "--seed", "1") == 2
    assert "holds another study named one" in capsys.readouterr().err
    assert not (here / "two").exists()
    assert len(trials_in(here / "one")) == 2
    (here / "thesis").mkdir()
    (here / "thesis" / "thesis.tex").write_text("precious")
    assert command(monkeypatch, *arguments[:-1], "thesis") == 2
    assert "holds other files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["listpos"], "did you mean 'listops'"),
        ([], "nothing to train on"),
        ([*TINY, "--trials", "0"], "--trials 0"),
        ([*TINY, "--trials", "some"], "some"),
        ([*TINY, "--memory", "0"], "--memory 0"),
        ([*TINY, "--workers", "0"], "--workers 0"),
        ([*TINY, "--trails", "3"], "--trials"),
        ([*TINY, "--search", "speed"], "--search speed"),
        ([*TINY, "--sampler", "grid"], "is a range"),
        ([*TINY, "--sampler", "best"], "best"),
        ([*TINY, "--storage", "no address"], "--storage no address"),
        ([*TINY, "--storage", "oracle9://me:secret@host/x"], "--storage oracle9://me:***@host/x"),
        ([*TINY, "--storage", "sqlite:////proc/nowhere/study.db"], "--storage sqlite:////proc/nowhere/study.db"),
        ([*TINY, "--ray-address", "auto"], "--engine ray"),
        ([*TINY, "--model.mixer", "mamba"], "mixer is 'mamba'"),
    ],
)
def test_bad_input_is_refused_with_one_message(
    arguments: list[str],
    message: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, "sweep", *arguments) == 2
    printed = capsys.readouterr()
    text = " ".join((printed.out + printed.err).split())
    assert message in text
    assert "Traceback" not in text
    assert "secret" not in text
    assert not (here / "outputs").exists()


@pytest.mark.parametrize(("package", "extra"), [("optuna", "sweep"), ("ray", "ray")])
def test_a_missing_package_is_named_by_its_extra(
    package: str, extra: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert command(monkeypatch, "sweep", *TINY, "--engine", "ray") == 2
    assert f"pip install 'synvolution[{extra}]'" in capsys.readouterr().err


def test_a_sweep_in_which_everything_fails_ends_with_the_reason(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, Outcome(reason="the disk is on fire"))
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, "--trials", "20", "--out", "one") == 2
    assert "none of 3 trials came to an end: the disk is on fire" in capsys.readouterr().err
    assert not (here / "one" / "best.json").exists()


# One trial in its process


def order(memory: float = 16.0, model: dict[str, Any] | None = None, **training: Any) -> Order:
    settings: dict[str, Any] = {"epochs": 1.0, "batch_size": 32, **training}
    options = replace(RECIPES["listops-quick"].training, **settings)
    sizes: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 16, **(model or {})}
    data = replace(RECIPES["listops-quick"].data, samples=240)
    recipe = replace(RECIPES["listops-quick"], model=ModelOptions(**sizes), training=options, data=data)
    return Order(recipe.to_json(), None, str(cache_folder(None)), memory)


def test_a_trial_tells_every_validation_and_its_best(here: Path) -> None:
    told: dict[int, float] = {}

    def judge(number: int, accuracy: float) -> bool:
        told[number] = accuracy
        return False

    outcome = run_trial(order(epochs=3.0, learning_rate=0.02), judge)
    assert list(told) == [1, 2, 3]
    assert outcome.value == max(told.values())
    assert outcome.peak_bytes is not None
    assert list(here.iterdir()) == []


def test_a_trial_that_is_told_to_stop_does(here: Path) -> None:
    told: list[int] = []

    def judge(number: int, accuracy: float) -> bool:
        told.append(number)
        return number == 2

    outcome = run_trial(order(epochs=30.0), judge)
    assert told == [1, 2]
    assert outcome.reason == PRUNED


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory here")
def test_a_trial_without_enough_memory_says_so(here: Path) -> None:
    big = {"hidden_size": 1024, "intermediate_size": 8192}  # some hundreds of MB with its moments
    outcome = run_trial(order(0.1, big), lambda *_: False)
    assert (outcome.value, outcome.reason, outcome.hopeless) == (None, OUT_OF_MEMORY, True)


def test_a_trial_that_cannot_be_built_says_why(here: Path) -> None:
    outcome = run_trial(order(model={"num_heads": 3}), lambda *_: False)
    assert outcome.reason is not None
    assert "3 heads do not divide 8 features" in outcome.reason
    assert not outcome.hopeless


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory here")
def test_the_study_goes_on_after_a_trial_without_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = ["--search", "hidden_size=8,2048", "--sampler", "grid", "--memory", "0.2", "--out", "one"]
    assert command(monkeypatch, "sweep", *TINY, *search) == 0
    first, second = rows_of(here / "one")
    assert (first["hidden_size"], first["state"]) == ("8", "complete")
    assert (second["hidden_size"], second["state"], second["reason"]) == ("2048", "pruned", OUT_OF_MEMORY)
    assert find_recipe("one/best.json").model.hidden_size == 8


def test_bad_trials_are_stopped_early(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(order: Order, judge: Judge) -> Outcome:
        good = Recipe.from_json(order.recipe).training.learning_rate > 0.0025
        for number in range(1, 6):
            if judge(number, number / 10 if good else 0.01):
                return Outcome(reason=PRUNED)
        return Outcome(value=0.5 if good else 0.01)

    monkeypatch.setattr(sweep_worker, "run_trial", run)
    more = ["--search", "learning_rate", "--startup", "2", "--sampler", "random", "--trials", "12", "--out", "one"]
    assert command(monkeypatch, "sweep", *TINY, *more) == 0
    rows = rows_of(here / "one")
    stopped = [row for row in rows if row["state"] == "pruned"]
    assert stopped
    assert all(float(row["learning_rate"]) <= 0.0025 and int(row["validations"]) < 5 for row in stopped)
    assert find_recipe("one/best.json").training.learning_rate > 0.0025


# Workers that vanish, and workers that share


def started(*arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "synvolution", "sweep", *TINY, *SEARCH, *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ))


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def asked(database: Path, question: str) -> int:
    """A number from a database that another process writes; 0 if it is not there yet."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute(question).fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_a_killed_sweep_goes_on_and_tries_the_lost_trial_again(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = here / "one"
    long = ["--training.epochs", "400", "--training.patience", "0"]  # it does not end before it is killed
    process = started("--out", "one", "--trials", "3", *long)

    until(lambda: asked(out / "study.db", "SELECT count(*) FROM trial_intermediate_values") > 0, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [trial.state for trial in trials_in(out)] == [TrialState.RUNNING]
    pretend(monkeypatch)
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, *long, "--trials", "3", "--out", "one") == 0
    lost, *rest = trials_in(out)
    assert (lost.state, sweep_study.counts(lost)) == (TrialState.FAIL, False)
    assert [trial.state for trial in rest] == [TrialState.COMPLETE] * 3
    assert rest[0].params == lost.params == {"learning_rate": 0.003, "dropout": 0.1}
    assert len(rows_of(out)) == 3
    # an undisturbed sweep tries the same
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, *long, "--trials", "3", "--out", "two") == 0
    assert [trial.params for trial in trials_in(here / "two")] == [trial.params for trial in rest]


def test_processes_share_one_study(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--storage", f"sqlite:///{here}/shared.db", "--study", "ours"]
    both = [started(*arguments, "--trials", "999", "--out", name) for name in ("one", "two")]
    workers = "SELECT count(DISTINCT value_json) FROM trial_user_attributes JOIN trial_values USING (trial_id) "
    workers += "WHERE key = 'worker'"
    for process in both:
        until(lambda: asked(here / "shared.db", workers) == 2, process)  # each has brought a value
    for process in both:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = asked(here / "shared.db", "SELECT count(*) FROM trials WHERE state = 'COMPLETE'")
    # a third takes over what they left
    pretend(monkeypatch)
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, *arguments, "--trials", str(done + 3), "--out", "three") == 0
    trials = optuna.load_study(study_name="ours", storage=f"sqlite:///{here}/shared.db").trials
    counted = [trial for trial in trials if sweep_study.counts(trial)]
    assert [trial.state for trial in counted] == [TrialState.COMPLETE] * (done + 3)
    assert len({trial.user_attrs[sweep_study.WORKER] for trial in counted}) == 3
    assert sum(trial.params == {"learning_rate": 0.003, "dropout": 0.1} for trial in counted) == 1
    assert len({trial.params["learning_rate"] for trial in counted}) == done + 3


asks = pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used")  # no heart beats in these tests


def place(folder: Path) -> Place:
    return Place(f"sqlite:///{folder}/study.db", "study")


@asks
def test_a_worker_of_another_machine_is_given_up_when_it_gives_no_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_study, "GRACE", 1)
    study = open_study(place(tmp_path), SETTINGS, [{"x": 1.0}])
    trial = study.ask()
    trial.suggest_float("x", 0, 2)
    trial.set_user_attr(sweep_study.WORKER, "elsewhere 01234567 1")
    storage = study._storage
    assert isinstance(storage, optuna.storages._heartbeat.BaseHeartbeat)
    storage.record_heartbeat(trial._trial_id)
    take_over(study, place(tmp_path))
    assert study.trials[0].state == TrialState.RUNNING  # it may be alive
    while study.trials[0].state == TrialState.RUNNING:
        time.sleep(0.2)
        take_over(study, place(tmp_path))
    waiting = study.get_trials(states=(TrialState.WAITING,))
    assert [trial.system_attrs["fixed_params"] for trial in waiting] == [{"x": 1.0}]


@asks
def test_a_living_worker_of_this_machine_keeps_its_trial_and_a_dead_one_loses_it(tmp_path: Path) -> None:
    study = open_study(place(tmp_path), SETTINGS, [])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    machine = sweep_study.identity().rpartition(" ")[0]
    for process in (os.getpid(), gone.pid):
        study.ask().set_user_attr(sweep_study.WORKER, f"{machine} {process}")
    take_over(study, place(tmp_path))
    assert [trial.state for trial in study.trials] == [TrialState.RUNNING, TrialState.FAIL, TrialState.WAITING]


@asks
def test_values_that_are_lost_again_and_again_are_left_alone(tmp_path: Path) -> None:
    study = open_study(place(tmp_path), SETTINGS, [{"x": 1.0}])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    machine = sweep_study.identity().rpartition(" ")[0]
    while study.get_trials(states=(TrialState.WAITING,)):
        study.ask().set_user_attr(sweep_study.WORKER, f"{machine} {gone.pid}")
        take_over(study, place(tmp_path))
    assert len(study.trials) == sweep_study.ATTEMPTS
    assert len(trials_of(study)) == 1  # the last attempt counts, so that the sweep comes to an end


def test_no_more_trials_than_wanted_however_many_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    assert command(monkeypatch, "sweep", *TINY, *SEARCH, "--trials", "9", "--workers", "4", "--out", "one") == 0
    assert sum(sweep_study.counts(trial) for trial in trials_in(here / "one")) == 9
    assert len(rows_of(here / "one")) == 9


def test_the_same_sweep_runs_on_ray(here: Path) -> None:
    pytest.importorskip("ray")
    process = started("--engine", "ray", "--trials", "2", "--out", "one")
    text = process.communicate()[0]
    assert process.returncode == 0, text
    counted = [trial for trial in trials_in(here / "one") if sweep_study.counts(trial)]
    assert [trial.state for trial in counted] == [TrialState.COMPLETE] * 2
    assert counted[0].params == {"learning_rate": 0.003, "dropout": 0.1}
    assert str(process.pid) not in {trial.user_attrs[sweep_study.WORKER].split()[-1] for trial in counted}
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_real_sweep_finds_better_than_the_start(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["listops-quick", "--data.samples", "3000", "--training.epochs", "3", "--model.hidden-size", "16"]
    arguments += ["--search", "hidden_size=16,32", "batch_size=16,32,64", "learning_rate", "eta", "dropout"]
    assert command(monkeypatch, "sweep", *arguments, "--trials", "12", "--out", "one") == 0
    trials = trials_in(here / "one")
    assert max(trial.value or 0 for trial in trials if trial.state == TrialState.COMPLETE) > (trials[0].value or 0)


@asks
def test_a_trial_lost_before_its_values_draws_them_in_its_old_place(tmp_path: Path) -> None:
    study = sweep_study.open_study(place(tmp_path), SETTINGS, [])
    distribution: dict[str, optuna.distributions.BaseDistribution] = {
        "learning_rate": optuna.distributions.FloatDistribution(0.0, 1.0)
    }
    lost = study.ask()
    second = study.ask(distribution)
    study.tell(second, 0.5)
    sweep_study.retry(study, study.tell(lost, state=TrialState.FAIL))
    again = study.ask(distribution)
    assert again.user_attrs["place"] == 0
    assert again.params["learning_rate"] != second.params["learning_rate"]
