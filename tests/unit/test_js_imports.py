"""Who may import whom in the browser: pages → views, timeline → core."""

import re
from pathlib import Path

import pytest

JS = Path(__file__).parents[2] / "static" / "js"
MAY_IMPORT = {
    "core": {"core"},
    "timeline": {"timeline", "core"},
    "views": {"views", "timeline", "core"},
    "pages": {"views", "timeline", "core"},
}
IMPORT = re.compile(r"""^\s*(?:import|export)\b[^"']*?\bfrom\s+["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']""", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(JS.rglob("*.js")), ids=lambda path: str(path.relative_to(JS)))
def test_a_module_imports_only_what_lies_below_it(path):
    for static, dynamic in IMPORT.findall(path.read_text()):
        target = static or dynamic
        assert target.startswith("."), f"{target} is not of this house"
        found = (path.parent / target).resolve()
        assert found.is_file(), f"{target} does not exist"
        assert found.relative_to(JS).parts[0] in MAY_IMPORT[path.relative_to(JS).parts[0]]
