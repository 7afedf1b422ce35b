"""planewise: runtime evidence for training and inference.

The public names are imported when first used, so that ``import planewise`` in a training process loads the recorder
alone and never the analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recorder.errors import PlanewiseError as PlanewiseError

__version__ = "0.1.0"

_HOMES = {
    "PlanewiseError": ".recorder.errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
