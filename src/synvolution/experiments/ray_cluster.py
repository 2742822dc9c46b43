"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
from typing import Any


def connect(address: str | None) -> Any:
    """Ray, connected.

    Args:
        address: of a cluster; None for the one RAY_ADDRESS names, else one on this machine.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError("--engine ray needs Ray: pip install 'synvolution[ray]'") from error
    try:
        dashboard = False if address is None else None
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=dashboard)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ValueError(f"--ray-address {address}: no cluster answers ({last_line(error)})") from error
    return ray


def last_line(error: BaseException) -> str:
    """The last line of an error's message, which says most.

    Example:
        >>> last_line(ValueError("first", "second")), last_line(ValueError())
        ("('first', 'second')", 'ValueError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
