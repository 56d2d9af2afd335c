"""Lockstep from a program or a shell: one file, Python's standard library alone. `rich`, where it is, draws `watch`.

    export LOCKSTEP_URL=http://127.0.0.1:8000 LOCKSTEP_TOKEN=lockstep_…
    python lockstep.py launch pipeline-1f1b --set steps=10 --watch

    from lockstep import Lockstep; run = Lockstep().launch("pipeline-1f1b", {"steps": 10}).wait()

Exit codes: 0 done, and a run that was waited for finished; 1 it failed or was lost; 2 the request was refused or
makes no sense; 3 it was stopped; 4 the server does not answer; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

EXIT_OF_STATE = {"finished": 0, "failed": 1, "lost": 1, "stopped": 3}
REFUSED, AWAY, INTERRUPTED = 2, 4, 130


class Refused(Exception):
    """The server's answer was a problem: `status`, and `errors` with field, given and message."""

    def __init__(self, status: int, title: str, errors: list[dict[str, str]]):
        self.status, self.errors = status, errors
        super().__init__("\n".join([title, *(f"{one['field']}: {one['given']} was given: {one['message']}" for one in errors)]))


class Away(Exception):
    """The server does not answer."""


class Lockstep:
    """A server, by its address and a token of yours; else those of LOCKSTEP_URL and LOCKSTEP_TOKEN."""

    def __init__(self, url: str = "", token: str = "", timeout_seconds: float = 30.0):
        self.url = (url or os.environ.get("LOCKSTEP_URL") or "http://127.0.0.1:8000").rstrip("/")
        self._token = token or os.environ.get("LOCKSTEP_TOKEN", "")
        self._timeout_seconds = timeout_seconds

    def launch(self, job: str | dict[str, Any], changes: dict[str, Any] | None = None) -> Run:
        """A preset by its key with `changes` (dotted paths to values), or a whole JobSpec."""
        if changes and not isinstance(job, str):
            raise ValueError("changes go with a preset; in a JobSpec of your own change the fields themselves")
        body = {"preset": job, "set": changes or {}} if isinstance(job, str) else job
        return Run(self, self.call("POST", "runs", body))

    def runs(self, q: str = "", sort: str = "-created", most: int = 25) -> Iterator[Run]:
        """What the list's search finds, page by page."""
        page = pages = 1
        while page <= pages and (left := most - 100 * (page - 1)) > 0:
            found = self.call("GET", "runs", q=q, sort=sort, page=page, size=100)
            yield from (Run(self, one) for one in found["runs"][:left])
            page, pages = page + 1, found["pages"]

    def run(self, run_id: str) -> Run:
        return Run(self, self.call("GET", f"runs/{run_id}"))

    def compare(self, *run_ids: str) -> dict[str, Any]:
        return dict(self.call("GET", "compare", run=list(run_ids)))

    def bulk(self, do: str, *run_ids: str, tags: Iterable[str] = ()) -> dict[str, Any]:
        """stop, tag, archive, unarchive, delete or restore each: which were `done`, which were `left` and why."""
        return dict(self.call("POST", "bulk", {"do": do, "runs": run_ids, "tags": list(tags)}))

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One request to the API, of which it can all: `call("GET", "notices")`. Its answer from JSON. Raises Refused, Away."""
        with self.open(method, path, body, **query) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def open(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        address = f"{self.url}/api/v1/{urllib.parse.quote(path)}?{urllib.parse.urlencode(query, doseq=True)}"
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(address, data, headers, method=method)
            return urllib.request.urlopen(request, timeout=self._timeout_seconds)
        except urllib.error.HTTPError as error:
            raise _refused(error) from None
        except (OSError, ValueError) as error:
            raise Away(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from None


class Run:
    """A run as the server told of it last: `run.state`, `run.figures`, `run.tags` and all else that the API shows."""

    def __init__(self, server: Lockstep, shown: dict[str, Any]):
        self._server, self.shown = server, shown

    def __getattr__(self, name: str) -> Any:
        if name == "shown" or name not in self.shown:
            raise AttributeError(name)
        return self.shown[name]

    def refresh(self) -> Run:
        self.shown = self._server.call("GET", f"runs/{self.id}")
        return self

    def steps(self, after: int = -1) -> Iterator[dict[str, Any]]:
        """Figures of the steps after `after` that are known by now."""
        while True:
            found = self._server.call("GET", f"runs/{self.id}/steps", after=after)
            yield from found["steps"]
            if not found["more"]:
                return
            after = found["steps"][-1]["step"]

    def wait(self, every_seconds: float = 1.0, tell: Callable[[Run], None] = lambda run: None) -> Run:
        """Until it has ended and all it recorded is sealed; `tell` is called after every look."""
        while not self.refresh().has_ended or (self.started and not self.sealed):
            tell(self)
            time.sleep(every_seconds)
        tell(self)
        return self

    def stop(self) -> bool:
        """Whether there was anything to stop."""
        try:
            return bool(self._server.call("POST", f"runs/{self.id}/stop")["stopped"])
        except Refused as error:
            if error.status != 409:
                raise
            return False

    def change(self, **changes: Any) -> Run:
        """name, note, tags, pinned, archived."""
        self.shown = self._server.call("PATCH", f"runs/{self.id}", changes)
        return self

    def share(self, **wish: Any) -> str:
        """The address of a new link (name, days, view, with_comments); it is told only this once."""
        return str(self._server.call("POST", f"runs/{self.id}/links", wish)["url"])

    def export(self, form: str, to: str | Path = ".", every_seconds: float = 0.5) -> Path:
        """Have the export made, wait for it, and keep it in the folder or file `to`."""
        while (made := self._server.call("POST", f"runs/{self.id}/exports/{form}"))["state"] in ("waiting", "making"):
            time.sleep(every_seconds)
        if made["state"] != "ready":
            raise Refused(500, made["reason"], [])
        with self._server.open("GET", f"runs/{self.id}/exports/{form}/file") as answer:
            path = Path(to) / (answer.headers.get_filename() or f"{self.id}.{form}") if Path(to).is_dir() else Path(to)
            with path.open("wb") as file:
                while piece := answer.read(1 << 18):
                    file.write(piece)
        return path

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.name!r} {self.state}, {self.steps_done} of {self.shown['spec']['steps']} steps>"

    def _repr_html_(self) -> str:
        """For notebooks: its picture and figures, and a way to its live page, which no other page may frame."""
        rows = "".join(f"<tr><td>{html.escape(name)}<td><b>{html.escape(value)}</b></tr>" for name, value in summary(self))
        picture = self._server.open("GET", f"runs/{self.id}/picture").read().decode()
        link = f"<a href='{html.escape(self.url, quote=True)}'><b>{html.escape(self.name)} · {html.escape(self.state)}</b></a>"
        return ("<div style='border:1px solid #8886;border-radius:8px;padding:10px 14px;display:inline-block'>"
                f"{link}<br>{picture}<table>{rows}</table></div>")


def summary(run: Run) -> list[tuple[str, str]]:
    """The figures that matter most, as words."""
    figures = {key: value for key, value in run.figures.items() if value is not None}
    paced = ", paced" if run.spec["pace"]["kind"] != "real" else ""
    return [
        ("steps", f"{run.steps_done} of {run.spec['steps']}"),
        ("bubble", f"{figures['bubble_share']:.1%}" if "bubble_share" in figures else "–"),
        ("bubble in theory", f"{run.theory['bubble_share']:.1%}"),
        ("step time", f"{figures['step_seconds'] * 1000:.0f} ms{paced}" if "step_seconds" in figures else "–"),
        ("last loss", f"{figures['loss_last']:.4g}" if "loss_last" in figures else "–"),
        ("lost spans", str(figures.get("dropped_spans", "–"))),
    ]


def _refused(error: urllib.error.HTTPError) -> Refused:
    if error.headers.get_content_type() != "application/problem+json":
        return Refused(error.code, f"{error.code} {error.reason}", [])
    problem = json.loads(error.read())
    return Refused(error.code, problem["title"], problem["errors"])


def sparkline(values: list[float], width: int = 40) -> str:
    """The latest values as a row of bars between their least and their most."""
    latest = values[-width:]
    low, high = (min(latest), max(latest)) if latest else (0.0, 0.0)
    return "".join("▁▂▃▄▅▆▇█"[int((value - low) / ((high - low) or 1) * 7)] for value in latest)


def _frame(run: Run, losses: list[float]) -> str:
    filled = round(30 * run.steps_done / run.spec["steps"])
    lines = [f"{run.name} ({run.id})  {run.state}" + (f", no. {run.place_in_queue} in the queue" if run.place_in_queue else ""),
             "█" * filled + "░" * (30 - filled), *(f"{name:18} {value}" for name, value in summary(run))]
    return "\n".join([*lines, f"{'loss':18} {sparkline(losses)}", run.reason]).rstrip()


def watch(run: Run, show: Callable[[str], None]) -> Run:
    """Show the run again and again until it is over."""
    losses: dict[int, float] = {}

    def tell(run: Run) -> None:
        losses.update((row["step"], row["loss"] or 0.0) for row in run.steps(max(losses, default=-1)))
        show(_frame(run, list(losses.values())))

    return run.wait(tell=tell)


def _watched(run: Run) -> Run:
    if importlib.util.find_spec("rich") is None:
        return watch(run, lambda words: print(words, end="\n\n", flush=True))
    from rich.live import Live
    from rich.text import Text

    with Live(Text("")) as live:
        return watch(run, lambda words: live.update(Text(words), refresh=True))


def _do(server: Lockstep, given: argparse.Namespace) -> tuple[Any, str, int]:
    """What the command found: as JSON, in words, and its exit code."""
    if given.command == "list":
        runs = list(server.runs(given.query, given.sort, given.most))
        lines = [f"{run.id}  {run.state:9} {run.steps_done:>6} of {run.spec['steps']:<6} {run.name}" for run in runs]
        return [run.shown for run in runs], "\n".join(lines), 0
    if given.command == "compare":
        found = server.compare(*given.runs)
        lines = [f"{one['path']:24} " + "  ".join(map(str, one["values"])) for one in found["differences"]]
        lines += [f"{one['title']:24} {one['values']}  p {one['p'][1:]}" for one in found["figures"]]
        return found, "\n".join([*lines, found["test"]]), 0
    if given.command == "launch":
        job = json.loads(Path(given.job).read_text()) if Path(given.job).is_file() else given.job
        run = server.launch(job, {path: _value(value) for path, _, value in (one.partition("=") for one in given.set)})
    else:
        run = server.run(given.run)
    if given.command == "watch" or getattr(given, "watch", False):
        run = run.wait() if given.json else _watched(run)
        return run.shown, "", EXIT_OF_STATE[run.state]
    match given.command:
        case "stop":
            stopped = run.stop()
            return {"stopped": stopped}, "asked to stop" if stopped else "there was nothing to stop", 0
        case "share" | "export":
            made = run.share() if given.command == "share" else str(run.export(given.form, given.to))
            return {"url" if given.command == "share" else "file": made}, made, 0
    return run.shown, run.url if given.command == "launch" else _frame(run, []), 0


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("lockstep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = {name: commands.add_parser(name) for name in ("launch", "list", "show", "watch", "stop", "compare", "export", "share")}
    for name, command in one.items():
        command.add_argument("--json", action="store_true", help="one JSON value on standard output and nothing else")
        if name in ("show", "watch", "stop", "export", "share"):
            command.add_argument("run", help="a run's id")
    one["launch"].add_argument("job", help="a preset, or a file with a JobSpec")
    one["launch"].add_argument("--set", action="append", default=[], metavar="A.B=C", help="change a field of the preset")
    one["launch"].add_argument("--watch", action="store_true", help="and stay until it is over")
    one["list"].add_argument("query", nargs="?", default="", help="as in the page's box: state:failed bubble>30%%")
    one["list"].add_argument("--sort", default="-created")
    one["list"].add_argument("--most", type=int, default=25)
    one["compare"].add_argument("runs", nargs="+")
    one["export"].add_argument("form", help="trace, html, spans-parquet, spans-csv, steps-parquet or steps-csv")
    one["export"].add_argument("--to", default=".", help="a folder or a file")
    return parser


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        found, words, code = _do(Lockstep(), given)
    except (Refused, Away, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return AWAY if isinstance(error, Away) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    if given.json or words:
        print(json.dumps(found) if given.json else words)
    return code


if __name__ == "__main__":
    sys.exit(main())
