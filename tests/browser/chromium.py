"""The system's own Chromium, headless, and where pictures of what it shows go."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "test-artifacts"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")

# A new headless Chromium would look up its maker's hosts at every start; the tests stay on this machine.
CHROMIUM_ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


def chromium_path() -> str:
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    reason = "no Chromium on PATH; install your system's package, such as: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
