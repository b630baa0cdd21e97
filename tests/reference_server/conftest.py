"""Fixtures of `served`, for every test here."""

from __future__ import annotations

from served import raw, running

__all__ = ["raw", "running"]
