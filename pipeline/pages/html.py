"""One HTML file with everything in it: templates, style and script, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .lanes import shortened

_PARTS = files(__package__) / "parts"


def rendered(template: str, **values: Any) -> str:
    """The page of a template; every value is text unless it is :class:`Markup`."""
    style, script = _part("page.css"), _part("timeline.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )  # fmt: skip
    shared = {"style": Markup(style), "script": Markup(script), "policy": policy}
    return _environment().get_template(template).render(**shared, **values)


def embedded(value: Any) -> Markup:
    """A value as JSON for a data block: no character of it can end the block."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    found = Environment(
        loader=FunctionLoader(_part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.filters |= {"ms": _ms, "mib": _mib, "short": _short, "grouped": _grouped, "embedded": embedded}
    return found


@lru_cache(maxsize=16)
def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _ms(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e6:,.3f} ms"


def _mib(size: float | None) -> str:
    return "-" if size is None else f"{size / 2**20:,.3f} MiB"


def _short(value: Any) -> str:
    return "not recorded" if value is None else shortened(str(value))


def _grouped(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"
