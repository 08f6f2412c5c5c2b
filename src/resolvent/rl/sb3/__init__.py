"""Stable-Baselines3: machines inferred while PPO or DQN train, and counterfactual steps for DQN.

Needs the extra: `pip install "resolvent[stable-baselines]"`.
"""

from resolvent.errors import MissingExtra

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise MissingExtra(
        'Stable-Baselines3 is missing: pip install "resolvent[stable-baselines]"'
    ) from error

from resolvent.rl.sb3.online_machines import InferMachines, OnlineMachineWrapper
from resolvent.rl.sb3.replay_buffer import CounterfactualReplayBuffer

__all__ = ["CounterfactualReplayBuffer", "InferMachines", "OnlineMachineWrapper"]
