"""The study of a sweep: where it is kept, which trials count, who takes over what a killed worker left."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from filelock import FileLock
from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from synvolution.training.run import difference

#: Seconds between signs of life of a running trial, and without one until it is given up.
HEARTBEAT, GRACE = 10, 60
#: How often a trial is begun whose worker vanished.
ATTEMPTS = 3
SETTINGS, REASON, WORKER, ATTEMPT, SURPLUS, PLACE = "settings", "reason", "worker", "attempt", "surplus", "place"

#: How the next values are found: (seed, trials that are random) → sampler. A grid is queued, nothing is sampled for it.
SAMPLERS: dict[str, Callable[[int, int], BaseSampler]] = {
    "tpe": lambda seed, startup: TPESampler(seed=seed, n_startup_trials=startup, constant_liar=True),
    "gp": lambda seed, startup: GPSampler(seed=seed, n_startup_trials=startup),
    "random": lambda seed, startup: RandomSampler(seed=seed),
    "grid": lambda seed, startup: RandomSampler(seed=seed),
}

#: When a trial is stopped early: (trials before the first is stopped) → pruner.
PRUNERS: dict[str, Callable[[int], optuna.pruners.BasePruner]] = {
    "median": lambda startup: optuna.pruners.MedianPruner(n_startup_trials=startup, n_warmup_steps=1),
    "hyperband": lambda startup: optuna.pruners.HyperbandPruner(min_resource=1),
    "none": lambda startup: optuna.pruners.NopPruner(),
}


@dataclass(frozen=True)
class Place:
    """Where a study is kept: an SQLAlchemy address and a name.

    Example:
        >>> Place("postgresql://me:secret@host/sweeps", "sweep-listops").shown
        'postgresql://me:***@host/sweeps'
    """

    url: str
    name: str

    @property
    def shown(self) -> str:
        """The address without its password."""
        try:
            return make_url(self.url).render_as_string(hide_password=True)
        except SQLAlchemyError:
            return "".join(("***@" if "@" in self.url else "", self.url.rpartition("@")[2]))

    @property
    def lock(self) -> FileLock | None:
        """Held while an SQLite file is made or repaired; servers do that themselves."""
        try:
            url = make_url(self.url)
        except SQLAlchemyError:
            return None
        memory = url.database in (None, "", ":memory:")
        return None if memory or url.get_backend_name() != "sqlite" else FileLock(f"{url.database}.lock")


class NumberedSampler(BaseSampler):
    """A sampler whose random numbers are decided by a seed and the place of the trial among those that count.

    So a sweep that was killed goes on as it would have, and no two workers draw the same numbers.
    """

    def __init__(self, make: Callable[[int, int], BaseSampler], seed: int, startup: int) -> None:
        self.make, self.seed, self.startup = make, seed, startup
        self.inner = make(seed, startup)

    def reseed_rng(self) -> None:
        """Nothing: the places of trials differ."""

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Begin the numbers of this trial."""
        place = trial.user_attrs.get(PLACE, place_of(study, trial))
        mixed = np.random.SeedSequence((self.seed, place)).generate_state(1)
        self.inner = self.make(int(mixed[0]), self.startup)
        self.inner.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """As the sampler does."""
        return self.inner.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As the sampler does."""
        return self.inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """As the sampler does."""
        return self.inner.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """As the sampler does."""
        self.inner.after_trial(study, trial, state, values)


@contextlib.contextmanager
def heartbeats_allowed() -> Iterator[None]:
    """Without Optuna's warning that heartbeats are an experiment; around all threads that work on a study."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


def open_study(place: Place, settings: dict[str, Any], first: Sequence[dict[str, Any]]) -> optuna.Study:
    """The study, made if it is not there; one with other settings is refused.

    Args:
        place: where it is kept.
        settings: what makes it this study; "sampler", "pruner", "startup" and "seed" among them.
        first: values of the trials to begin with.
    """
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # failures of trials are told by the command
    sampler = NumberedSampler(SAMPLERS[settings["sampler"]], settings["seed"], settings["startup"])
    pruner = PRUNERS[settings["pruner"]](settings["startup"])
    lock = place.lock
    try:
        if lock is not None:
            Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        storage = _storage(place.url)
        arguments: Any = {"study_name": place.name, "storage": storage, "sampler": sampler, "pruner": pruner}
        try:
            study = optuna.create_study(**arguments, direction="maximize")
        except DuplicatedStudyError:
            study = optuna.load_study(**arguments)
        _settle(study, settings, first, place)
    except (SQLAlchemyError, ImportError, StorageInternalError, OSError) as error:
        raise ValueError(f"--storage {place.shown}: {_first_line(error)}") from error
    finally:
        if lock is not None:
            lock.release()
    return study


def _storage(url: str) -> RDBStorage:
    backend = make_url(url).get_backend_name()
    # a worker waits for its turn to write; a server's connection that was cut is opened anew
    engine: dict[str, Any] = {"connect_args": {"timeout": 60}} if backend == "sqlite" else {"pool_pre_ping": True}
    return RDBStorage(
        url,
        engine_kwargs=engine,
        heartbeat_interval=HEARTBEAT,
        grace_period=GRACE,
        heartbeat_stale_trial_callback=retry,
    )


def _settle(study: optuna.Study, settings: dict[str, Any], first: Sequence[dict[str, Any]], place: Place) -> None:
    """Write the settings into a new study and queue its first trials, or compare them with those it has."""
    settings = json.loads(json.dumps(settings))
    held = study.user_attrs.get(SETTINGS)
    if held is None:
        for values in first:
            study.enqueue_trial(values, skip_if_exists=True)
        study.set_user_attr(SETTINGS, settings)  # last: whoever dies before leaves a study that is settled anew
    elif held != settings:
        raise ValueError(
            f"{place.shown} holds another study named {place.name}: give another --out or --study. "
            f"What differs: {difference(held, settings)}"
        )


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]


# Which trials count


def attempt_of(trial: FrozenTrial) -> int:
    """The how manieth attempt at these values it is, from 1."""
    return int(trial.user_attrs.get(ATTEMPT, 1))


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of those asked for: not if it waits, was one too many, or is tried again.

    Example:
        >>> lost = optuna.trial.create_trial(state=TrialState.FAIL)
        >>> counts(lost), counts(optuna.trial.create_trial(value=0.5))
        (False, True)
    """
    if trial.state == TrialState.WAITING or SURPLUS in trial.user_attrs:
        return False
    return trial.state != TrialState.FAIL or REASON in trial.user_attrs or attempt_of(trial) >= ATTEMPTS


def trials_of(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count, in order."""
    return [trial for trial in study.get_trials(deepcopy=False) if counts(trial)]


# What a killed worker left


def identity() -> str:
    """This process, as no other on any machine that runs: host, boot and process."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    mark = boot.read_text().strip()[:8] if boot.exists() else ""
    return f"{socket.gethostname()} {mark} {os.getpid()}"


def take_over(study: optuna.Study, place: Place) -> None:
    """Queue again what vanished workers were doing: those of this machine at once, others when they gave no sign."""
    with place.lock or contextlib.nullcontext():
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if _vanished(trial):
                with contextlib.suppress(ValueError, UpdateFinishedTrialError):  # someone else was faster
                    retry(study, study.tell(trial.number, state=TrialState.FAIL))
    optuna.storages.fail_stale_trials(study)


def _vanished(trial: FrozenTrial) -> bool:
    """Whether the process of a trial is known to be gone: it was here, or it never said where it was."""
    machine, _, process = trial.user_attrs.get(WORKER, "").rpartition(" ")
    if not machine:
        assert trial.datetime_start is not None
        return datetime.now() - trial.datetime_start > timedelta(seconds=GRACE)
    return machine == identity().rpartition(" ")[0] and not _alive(int(process))


def _alive(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there is no way to ask that does no harm; the heartbeat decides
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def place_of(study: optuna.Study, trial: FrozenTrial) -> int:
    """How many trials that count came before; it decides what a trial draws, so one tried again keeps its place."""
    return sum(other.number < trial.number for other in trials_of(study))


def retry(study: optuna.Study, trial: FrozenTrial) -> None:
    """Queue the values of a lost trial once more, unless they were lost too often."""
    if attempt_of(trial) < ATTEMPTS:
        values = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        attributes = {ATTEMPT: attempt_of(trial) + 1, PLACE: trial.user_attrs.get(PLACE, place_of(study, trial))}
        study.enqueue_trial(values, user_attrs=attributes)
