"""The name of a Gymnasium environment → the environment, or one line that says why not."""

import sys
from typing import Any

import gymnasium as gym

from resolvent.errors import OptionError


def make_environment(environment: str) -> gym.Env[Any, Any]:
    """Make an environment by its id, or by module:id to import the module first."""
    module, colon, _ = environment.partition(":")
    if colon:
        sys.path.insert(0, "")  # a module beside the user counts, as with `python -m`
    try:
        return gym.make(environment)
    except ImportError as error:
        what = f"module '{module}' of " if colon else ""
        raise OptionError(f"cannot import {what}environment '{environment}': {error}") from error
    except gym.error.Error as error:
        raise OptionError(
            f"cannot make environment '{environment}': {str(error).rstrip('.')} (give a Gymnasium "
            f"id such as resolvent/House-v0, or module:Name-v0 to import what registers it)"
        ) from error
