"""What is measured: benchmarks."""
