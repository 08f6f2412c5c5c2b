"""Moved."""

from resolvent.machines.io.reward_machine_text import (  # noqa: F401
    encode_reward_machine,
    read_reward_machine,
    write_reward_machine,
)
