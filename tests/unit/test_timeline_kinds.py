"""The page's table of kinds is the trainer's."""

from __future__ import annotations

import re
from pathlib import Path

from trainer.trace.kinds import MODEL_WORK, Kind, Lane

TEXT = (Path(__file__).parents[2] / "static/js/core/kinds.js").read_text()


def _numbers(name: str) -> dict[str, int]:
    found = re.search(rf"export const {name} = Object\.freeze\(\{{(.*?)\}}\)", TEXT, re.DOTALL)
    assert found
    return {key: int(value) for key, value in re.findall(r"(\w+): (\d+)", found[1])}


def test_kinds_and_lanes_have_the_trainers_numbers() -> None:
    assert _numbers("KIND") == {kind.name: kind.value for kind in Kind}
    assert _numbers("LANE") == {lane.name: lane.value for lane in Lane}


def test_model_work_is_the_trainers() -> None:
    found = re.search(r"export const MODEL_WORK = \[(.*?)\]", TEXT)
    assert found
    assert re.findall(r"KIND\.(\w+)", found[1]) == [kind.name for kind in MODEL_WORK]


def test_every_kind_has_a_word_and_a_colour_of_the_theme() -> None:
    table = re.search(r"const TABLE = \[(.*?)\n\];", TEXT, re.DOTALL)
    assert table
    rows = re.findall(r'\[KIND\.(\w+), "([^"]+)", "[^"]*", "(--kind-[a-z-]+)"\]', table[1])
    assert [name for name, _, _ in rows] == [kind.name for kind in Kind]
    tokens = (Path(__file__).parents[2] / "static/css/tokens.css").read_text()
    for _, _, variable in rows:
        assert tokens.count(f"{variable}:") == 2, variable  # dark and light
