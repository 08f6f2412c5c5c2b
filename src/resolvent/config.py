"""Settings of this process: limits on the memory that files may ask for."""

from resolvent._util.validation import Limits

__all__ = ["Limits"]
