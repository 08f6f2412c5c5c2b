"""Python without its global lock: said at import, and refused where the lock cannot come back.

The core was never tried without it. A free-threaded Python takes the lock back when it loads a
module that does not say it can do without, as our core; only `PYTHON_GIL=0` and `-X gil=0` forbid
that.
"""

import os
import sys
import warnings

ADVICE = "use a Python with it, or leave out PYTHON_GIL=0 and -X gil=0"


def is_off() -> bool:
    """Whether threads of this Python run without a common lock."""
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


def is_kept_off() -> bool:
    """Whether the lock is off, and whoever started this Python wants it to stay so."""
    asked = sys._xoptions.get("gil", os.environ.get("PYTHON_GIL"))
    return is_off() and asked == "0"


def check() -> None:
    """Warn that the lock comes back, or refuse to be imported if it cannot."""
    if is_kept_off():
        raise ImportError(f"Resolvent does not run without Python's global lock: {ADVICE}")
    if is_off():
        warnings.warn(
            "Resolvent does not run without Python's global lock: it is taken back as soon as the "
            "core is loaded",
            RuntimeWarning,
            stacklevel=3,
        )
