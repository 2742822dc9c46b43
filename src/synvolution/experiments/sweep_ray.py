"""Workers of a sweep on a Ray cluster: each a task that works on the shared study."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.engine import make_url

from synvolution.experiments.ray_cluster import connect, last_line
from synvolution.experiments.sweep_study import heartbeats_allowed
from synvolution.experiments.sweep_worker import Plan, work


def start(plan: Plan, workers: int, address: str | None) -> Callable[[], bool]:
    """Start the workers; what is returned tells whether all have ended, and raises what made one fail.

    Args:
        plan: what they do.
        workers: how many tasks.
        address: of a cluster; None for the one RAY_ADDRESS names, else one on this machine.
    """
    ray = connect(address)
    machines = [node for node in ray.nodes() if node["Alive"]]
    if len(machines) > 1 and make_url(plan.place.url).get_backend_name() == "sqlite":
        raise ValueError(f"{len(machines)} machines cannot share {plan.place.shown}: give --storage URL of a database")
    resources = ray.cluster_resources()
    each = {"num_cpus": max(1, int(resources.get("CPU", 1)) // workers), "num_gpus": int("GPU" in resources)}
    task = ray.remote(_work).options(**each, max_retries=-1)
    left = [task.remote(plan) for _ in range(workers)]

    def ended() -> bool:
        done, rest = ray.wait(left, num_returns=len(left), timeout=0) if left else ([], [])
        left[:] = rest
        try:
            ray.get(done)
        except ray.exceptions.RayError as error:
            raise ValueError(f"a worker on Ray failed: {last_line(error)}") from error
        if not left:
            ray.shutdown()
        return not left

    return ended


def _work(plan: Plan) -> None:
    """What one task does, on the machine it runs on."""
    with heartbeats_allowed():
        work(plan, plan.open())
