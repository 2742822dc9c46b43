"""``python -m synvolution``."""

from synvolution.cli import main

main()
