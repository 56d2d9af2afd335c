"""The version of Plotly's script that the plotly package of this environment brings."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

PACKAGED = Path(str(resources.files("plotly") / "package_data" / "plotly.min.js"))


def version_of(script: Path) -> str:
    """As the script's first lines say it."""
    with script.open() as lines:
        head = lines.read(400)
    return re.search(r"plotly\.js (?:\([^)]*\) )?v([\d.]+)", head)[1]


if __name__ == "__main__":
    print(version_of(PACKAGED))
