"""Moved."""

from resolvent._util.runtime import (EXTRAS, Package, _MODULES, _global_lock, _import_trouble, _installed, core, dependencies, extra, look_at, requirements_of, system)  # noqa: F401
