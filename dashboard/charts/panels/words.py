"""Definitions as a panel says them under what it shows."""

from __future__ import annotations

from collections.abc import Iterable

from trainer.trace.figures import Definition


def words(definitions: Iterable[Definition]) -> list[dict[str, str]]:
    return [{"title": one.title, "definition": one.definition, "formula": one.formula} for one in definitions]
