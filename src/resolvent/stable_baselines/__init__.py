"""Stable-Baselines3: machines inferred while PPO or DQN train, and steps that DQN imagines.

Needs the extra: `pip install "resolvent[stable-baselines]"`.
"""

from resolvent.errors import MissingExtra

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise MissingExtra(
        'Stable-Baselines3 is missing: pip install "resolvent[stable-baselines]"'
    ) from error

from resolvent.stable_baselines.counterfactual_replay_buffer import CounterfactualReplayBuffer
from resolvent.stable_baselines.growing_memory import GrowingMemory
from resolvent.stable_baselines.infer_machines import InferMachines

__all__ = ["CounterfactualReplayBuffer", "GrowingMemory", "InferMachines"]
