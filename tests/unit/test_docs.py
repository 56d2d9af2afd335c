import re
from pathlib import Path

import pytest

from trainer.trace.figures import DEFINITIONS, PAGE_DEFINITIONS
from trainer.trace.network_figures import NETWORK_DEFINITIONS

SHOWN = DEFINITIONS | PAGE_DEFINITIONS | NETWORK_DEFINITIONS

ROOT = Path(__file__).parents[2]
HOUSE = ("trainer", "workers", "dashboard", "static", "templates", "tests")
DOCS = ROOT / "dashboard" / "docs"


@pytest.mark.parametrize("key", SHOWN)
def test_the_page_on_figures_says_what_the_code_says(key):
    figure = SHOWN[key]
    row = f"| {figure.title} | {figure.unit} | {figure.definition} | {figure.formula} |"
    assert row in (DOCS / "figures.md").read_text().splitlines()


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *DOCS.glob("*.md")]), ids=lambda path: path.name)
def test_links_and_paths_in_the_pages_lead_somewhere(document):
    text = document.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    paths = [path for path in re.findall(r"`([\w./-]+)`", text) if path.split("/")[0] in HOUSE and "/" in path]
    missing = [link for link in links if not (document.parent / link).exists()]
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert not missing
