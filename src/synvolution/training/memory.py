"""Memory of the process: large tensors are reused instead of being given back to the system after each step."""

from __future__ import annotations

import ctypes
import platform

#: glibc's names: size from which a block is mapped on its own, and free memory from which it is given back.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_memory() -> bool:
    """Let glibc keep freed memory, so that a training step does not fault its pages in anew. True where it works.

    Training takes and frees the same tensors at each step; by default every large one is mapped and unmapped, and each
    of its pages faulted in again. The process may hold on to as much as its largest step needed.

    Example:
        >>> isinstance(keep_memory(), bool)
        True
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    largest = 2**31 - 1
    return bool(mallopt(M_MMAP_THRESHOLD, largest)) & bool(mallopt(M_TRIM_THRESHOLD, largest))
