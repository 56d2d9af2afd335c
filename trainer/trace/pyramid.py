"""The zoom levels of a run, in tiles: `zoom.sqlite3` in its store, after the manner of map tiles (MBTiles).

They follow from the segments: a segment is added once the manifest names it, in one transaction with the
segment's number. So a crash between the two loses and doubles nothing, and a pyramid that is missing, broken
or behind is made again from the segments.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trainer.trace import zoom
from trainer.trace.frame import Columns
from trainer.trace.manifest import Segment
from trainer.trace.zoom import Raster, Tile

log = logging.getLogger(__name__)

NAME = "zoom.sqlite3"
VERSION = 1
PATIENCE_SECONDS = 10

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tile (bits INTEGER, number INTEGER, data BLOB NOT NULL, PRIMARY KEY (bits, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head (segments INTEGER NOT NULL, top_bits INTEGER NOT NULL);
INSERT INTO head SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM head);
"""


class PyramidWriter:
    """There is one at a time; call `open` first. `segments` says how many are in it."""

    def __init__(self, folder: Path):
        self._path = folder / NAME
        self._database: sqlite3.Connection | None = None
        self.segments, self._top_bits = 0, 0

    def add(self, segment: Segment, spans: Callable[[], Columns]) -> None:
        """The next segment; `spans` (rank, kind, start_ns, duration_ns) is called for what it holds."""
        if segment.number != self.segments + 1:
            raise ValueError(f"segment {segment.number} does not follow segment {self.segments}")
        database = self._opened()
        top_bits = self._top_bits
        database.execute("BEGIN IMMEDIATE")
        try:
            if segment.spans:
                top_bits = self._grown(database, segment)
                self._add(database, segment, spans(), top_bits)
            database.execute("UPDATE head SET segments = ?, top_bits = ?", (segment.number, top_bits))
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise
        self.segments, self._top_bits = segment.number, top_bits

    def open(self, segments: int) -> None:
        """Find out how far it is. One that is broken, or ahead of the store's `segments`, is begun anew."""
        try:
            self._opened()
        except sqlite3.DatabaseError as error:
            log.warning("%s is made again: %s", self._path, error)
            self._begin_anew()
        if self.segments > segments:
            self._begin_anew()

    def close(self) -> None:
        """No more comes: everything into the one file."""
        if self._database is not None:
            self._database.execute("PRAGMA journal_mode=DELETE")
            self._database.close()
            self._database = None

    def _begin_anew(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(NAME + suffix).unlink(missing_ok=True)
        self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            database = sqlite3.connect(self._path, PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                # A power cut may cost the last segments' tiles, which are made again; never the file.
                database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
                version = database.execute("PRAGMA user_version").fetchone()[0]
                if version not in (0, VERSION):
                    raise sqlite3.DatabaseError(f"its version is {version}, not {VERSION}")
                database.executescript(_SCHEMA + f"PRAGMA user_version={VERSION};")
                self.segments, self._top_bits = database.execute("SELECT segments, top_bits FROM head").fetchone()
            except sqlite3.Error:
                database.close()
                raise
            self._database = database
        return self._database

    def _grown(self, database: sqlite3.Connection, segment: Segment) -> int:
        """The coarsest level, one whose tile holds the run so far; levels that are new are made from the one below."""
        wanted = max(self._top_bits, segment.zoom_bits)
        while segment.end_ns >> wanted + zoom.TILE_BITS > 0 or segment.start_ns >> wanted + zoom.TILE_BITS < -1:
            wanted += 1
        for bits in range(self._top_bits or wanted, wanted):
            below = database.execute("SELECT number, data FROM tile WHERE bits = ?", (bits,)).fetchall()
            for number, data in below:
                _add_tile(database, bits + 1, number >> 1, zoom.folded(zoom.unpack(data), bool(number & 1)), is_open=True)
        return wanted

    def _add(self, database: sqlite3.Connection, segment: Segment, spans: Columns, top_bits: int) -> None:
        made = _raster(segment, spans)
        while True:
            open_tile = segment.end_ns >> made.bits + zoom.TILE_BITS  # the next segment goes on in it
            for number, tile in zoom.tiles(made).items():
                _add_tile(database, made.bits, number, tile, is_open=number == open_tile)
            if made.bits >= top_bits:
                return
            made = zoom.coarser(made)


def _raster(segment: Segment, spans: Columns) -> Raster:
    first = segment.start_ns >> segment.zoom_bits
    last = max(segment.end_ns - 1, segment.start_ns) >> segment.zoom_bits
    return zoom.raster(spans, segment.zoom_bits, first, last - first + 1)


def _add_tile(database: sqlite3.Connection, bits: int, number: int, tile: Tile, is_open: bool) -> None:
    known = database.execute("SELECT data FROM tile WHERE bits = ? AND number = ?", (bits, number)).fetchone()
    if known is not None:
        tile = zoom.added(zoom.unpack(known[0]), tile)
    database.execute("REPLACE INTO tile VALUES (?, ?, ?)", (bits, number, zoom.pack(tile, is_open)))


class Pyramid:
    """One state of a run's pyramid, for a reader: `segments` are in it, its coarsest level is `top_bits`; 0 if there is none."""

    def __init__(self, database: sqlite3.Connection | None):
        self._database = database
        self.segments, self.top_bits = 0, 0
        if database is not None:
            database.execute("BEGIN")
            self.segments, self.top_bits = database.execute("SELECT segments, top_bits FROM head").fetchone()

    def tiles(self, bits: int, first: int, last: int) -> dict[int, Tile]:
        """Those of a level that are numbered `first` to `last` and in which something was done."""
        if self._database is None:
            return {}
        asked = "SELECT number, data FROM tile WHERE bits = ? AND number BETWEEN ? AND ?"
        return {number: zoom.unpack(data) for number, data in self._database.execute(asked, (bits, first, last))}


@contextmanager
def opened(folder: Path) -> Iterator[Pyramid]:
    path = folder / NAME
    if not path.exists():
        yield Pyramid(None)
        return
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", PATIENCE_SECONDS, uri=True, isolation_level=None)) as database:
        try:
            found = Pyramid(database)
        except sqlite3.DatabaseError as error:  # half made, or not a pyramid: the segments have it all
            log.warning("%s cannot be read: %s", path, error)
            found = Pyramid(None)
        yield found
