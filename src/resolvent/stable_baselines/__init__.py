"""Stable-Baselines3: machines inferred while PPO or DQN train, and counterfactual steps for DQN.

The implementation is `resolvent.rl.sb3`. Needs the extra:
`pip install "resolvent[stable-baselines]"`.
"""

from resolvent.rl.sb3 import CounterfactualReplayBuffer, InferMachines, OnlineMachineWrapper

__all__ = ["CounterfactualReplayBuffer", "InferMachines", "OnlineMachineWrapper"]
