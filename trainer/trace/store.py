"""A run's store: everything its ranks recorded, on disk.

    manifest.json          the head: how much of the rest is valid; written last and at once
    segments.jsonl         a row a segment: when, which steps, how many bytes, their checksum
    000001.spans.parquet   one segment's spans, sorted by rank, lane and start
    zoom.sqlite3           zoom levels in tiles; made from the segments, and made again should they be lost
    counters.jsonl, marks.jsonl, steps.jsonl   like segments.jsonl these only grow

A segment's file that the manifest does not name is the rest of a writing that was interrupted.
"""

from trainer.trace.store_reader import StoreReader
from trainer.trace.store_writer import StoreWriter

__all__ = ["StoreReader", "StoreWriter"]
