"""A worker of a sweep: takes one trial after the other from the study until there are as many as wanted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.exceptions import TrialPruned, UpdateFinishedTrialError
from optuna.trial import TrialState

from synvolution.data.base import cache_folder
from synvolution.experiments.search_space import Dimension, Value, configured, suggest
from synvolution.experiments.sweep_study import (
    REASON,
    SURPLUS,
    WORKER,
    Place,
    counts,
    identity,
    open_study,
    take_over,
    trials_of,
)
from synvolution.experiments.sweep_trial import PRUNED, Order, run_trial
from synvolution.recipes import Recipe

#: Failures before the first success after which a sweep ends: something is wrong with all of it.
HOPELESS = 3
PEAK = "peak_gib"


class TrialFailed(Exception):
    """A trial without a value."""


@dataclass(frozen=True)
class Plan:
    """Everything a worker must know, on whatever machine.

    Args:
        recipe: the start.
        origin: where the data is, as given.
        space: what is searched.
        place: where the study is kept.
        settings: what makes it this study.
        first: values of the trials to begin with.
        trials: how many in all.
        memory: GiB for one trial.
        share: workers on this machine.
    """

    recipe: Recipe
    origin: str | None
    space: dict[str, Dimension]
    place: Place
    settings: dict[str, Any]
    first: list[dict[str, Value]]
    trials: int
    memory: float
    share: int = 1

    def open(self) -> optuna.Study:
        """Its study."""
        return open_study(self.place, self.settings, self.first)


def work(plan: Plan, study: optuna.Study) -> None:
    """Run trials until the study has all of them; waits for those of other workers, and takes over what they lose."""
    while True:
        take_over(study, plan.place)
        found = trials_of(study)
        if _without_hope(found):
            return
        if len(found) < plan.trials:
            _one(plan, study)
        elif all(trial.state.is_finished() for trial in found):
            return
        else:
            time.sleep(0.5)


def _without_hope(found: list[optuna.trial.FrozenTrial]) -> bool:
    states = [trial.state for trial in found]
    return TrialState.COMPLETE not in states and states.count(TrialState.FAIL) >= HOPELESS


def _one(plan: Plan, study: optuna.Study) -> None:
    mine: list[int] = []

    def objective(trial: optuna.Trial) -> float:
        mine.append(trial.number)
        trial.set_user_attr(WORKER, identity())
        before = [other for other in study.get_trials(deepcopy=False) if other.number < trial.number and counts(other)]
        if len(before) >= plan.trials:  # another worker was faster
            trial.set_user_attr(SURPLUS, True)
            raise TrialFailed
        return _value(plan, trial)

    try:
        study.optimize(objective, n_trials=1, catch=(TrialFailed,))
    except (UpdateFinishedTrialError, ValueError):
        # it gave no sign for long (a machine that slept), so another worker has taken it over
        if not mine or study.get_trials(deepcopy=False)[mine[0]].state != TrialState.FAIL:
            raise


def _value(plan: Plan, trial: optuna.Trial) -> float:
    values = suggest(trial, plan.space)
    try:
        recipe = configured(plan.recipe, values, plan.space)
    except ValueError as error:  # values that exclude each other
        trial.set_user_attr(REASON, str(error))
        raise TrialFailed(str(error)) from error

    def judge(number: int, accuracy: float) -> bool:
        trial.report(accuracy, number)
        return trial.should_prune()

    order = Order(recipe.to_json(), plan.origin, str(cache_folder(None)), plan.memory, plan.share)
    outcome = run_trial(order, judge)
    if outcome.peak_bytes is not None:
        trial.set_user_attr(PEAK, round(outcome.peak_bytes / 2**30, 3))
    if outcome.value is not None:
        return outcome.value
    trial.set_user_attr(REASON, outcome.reason)
    # a stopped trial tells the sampler to look elsewhere, a failed one tells it nothing
    raise TrialPruned if outcome.hopeless or outcome.reason == PRUNED else TrialFailed(outcome.reason)
