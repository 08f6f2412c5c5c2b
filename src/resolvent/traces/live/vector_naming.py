"""Moved."""

from resolvent.rl.vector_env import (  # noqa: F401
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    info_of,
    one_environment,
    split,
)
