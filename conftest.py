"""Which doctests are left out, since what they need is not installed."""

from importlib.util import find_spec

collect_ignore_glob = []
if find_spec("stable_baselines3") is None:
    collect_ignore_glob.append("src/resolvent/stable_baselines/*")
