"""What retain's promises cost, measured: see docs/benchmarks.md."""
