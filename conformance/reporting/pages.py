"""HTML pages from templates; each page is one file that needs no other.

Every value goes through `visible` and is escaped on its way into a page, so whatever a service sent is shown as text.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from conformance.text import visible


@cache
def environment() -> Environment:
    """The environment in which the templates beside this module are compiled. Loading Jinja and compiling takes as long
    as a hundred requests."""
    return Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def page(template: str, **values: Any) -> str:
    """A page from a template beside this module."""
    return environment().get_template(template).render(values)


@cache
def resource(name: str) -> str:
    """A text file beside this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value, keep="\n")
