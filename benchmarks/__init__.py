"""How fast the suite is, as ratios measured side by side. `python -m benchmarks` measures, writes and explains them."""
