"""The life of a run: a look at each target, its checks in one process or several, and what they reported."""
