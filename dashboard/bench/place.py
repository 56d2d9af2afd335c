"""Where a bench takes place: a stack in a folder of its own, and the system's Chromium, logged in as its owner."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import redis

from dashboard.conf import redis_url_file
from dashboard.runs import fleet
from dashboard.stack.files import Stack
from dashboard.stack.own import own_stack

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]


class CannotMeasure(Exception):
    """Something that the bench needs is missing here; the message says what would do."""


def wait_for(ask: Callable[[], T], what: str, seconds: float = PATIENCE_SECONDS, every_seconds: float = 0.02) -> T:
    """What `ask` gives as soon as it is true."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if answer := ask():
            return answer
        time.sleep(every_seconds)
    raise CannotMeasure(f"waited {seconds:.0f} s in vain for {what}")


@contextmanager
def own_place() -> Iterator[tuple[Path, Stack, float]]:
    """A fresh home folder, the stack in it, its worker ready, and the seconds in which it came up to answer.

    Folder and stack are gone afterwards.
    """
    with TemporaryDirectory(prefix="lockstep-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        for name in ("REDIS_URL", "DATABASE_URL"):
            os.environ.pop(name, None)
        os.environ["LOCKSTEP_HOME"] = str(home)  # for the stack, which inherits it
        began = time.monotonic()
        with own_stack(home) as stack:
            up_seconds = time.monotonic() - began
            wait_for_worker(home)
            yield home, stack, up_seconds


def wait_for_worker(home: Path) -> None:
    client = redis.Redis.from_url(redis_url_file(home).read_text().strip())

    def ready() -> bool:
        return any(worker.host_ready and not worker.runs for worker in fleet.workers(client))

    wait_for(ready, "a worker that is ready")


@contextmanager
def browser() -> Iterator[Any]:
    """A browser context of Playwright's, in the system's Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise CannotMeasure("Playwright is missing; `make setup` installs it with the rest of the development tools.") from None
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise CannotMeasure("There is no Chromium on PATH; your system's package would do, such as: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        try:
            yield chromium.new_context(viewport={"width": 1440, "height": 900})
        finally:
            chromium.close()


def owner_page(context: Any, home: Path, stack: Stack) -> Any:
    """A page of the owner, whose account its first visit makes."""
    page = context.new_page()
    password = secrets.token_urlsafe(16)
    page.goto(f"{stack.url}/welcome/{(home / 'first-visit').read_text().strip()}/")
    page.fill("[name=username]", "bench")
    page.fill("[name=password1]", password)
    page.fill("[name=password2]", password)
    page.click("form.gate-form button[type=submit]")
    page.wait_for_url(f"{stack.url}/")
    return page


def launch(page: Any, stack: Stack, preset: str, **fields: object) -> float:
    """Fill in the launch page and press Launch; when it was pressed, in ms since 1970. The run's page opens."""
    page.goto(f"{stack.url}/launch/?preset={preset}")
    for name, value in fields.items():
        page.fill(f"[name='{name.replace('__', '.')}']", str(value))
    pressed_ms: float = page.evaluate(
        "() => { const now = performance.timeOrigin + performance.now(); document.getElementById('launch').click(); return now; }"
    )
    page.wait_for_url("**/runs/*/", timeout=PATIENCE_SECONDS * 1000)
    return pressed_ms


def until(page: Any, condition: str, seconds: float = PATIENCE_SECONDS, every_seconds: float = 0.02) -> None:
    """Wait until a JavaScript expression holds; the product's policy forbids the eval of Playwright's own waiting."""
    wait_for(lambda: page.evaluate(f"() => Boolean({condition})"), condition, seconds, every_seconds)


def rank_host(home: Path) -> int | None:
    """The process in which this stack's ranks are forked."""
    return process_of(home, b"trainer.host")


def process_of(home: Path, module: bytes) -> int | None:
    """The process of the stack in `home` that runs a module of Python's."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is another's
            continue
        if module in command and f"LOCKSTEP_HOME={home}".encode() in environment:
            return int(folder.name)
    return None


def restart_rank_host(home: Path) -> None:
    """Kill it, and wait until its successor exists, though it has loaded nothing yet."""
    old = wait_for(lambda: rank_host(home), "the rank host")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: rank_host(home) not in (None, old), "the next rank host")
