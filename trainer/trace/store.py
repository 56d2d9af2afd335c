"""A run's store: everything its ranks recorded, on disk.

    manifest.json          what is valid; written last and at once
    000001.spans.parquet   one segment's spans, sorted by rank, lane and start
    000001.zoom.parquet    the same at the first zoom level
    counters.jsonl, marks.jsonl, steps.jsonl   only grow; the manifest says how far they are valid

A file that the manifest does not name is the rest of a writing that was interrupted.
"""

from trainer.trace.store_reader import StoreReader
from trainer.trace.store_writer import StoreWriter

__all__ = ["StoreReader", "StoreWriter"]
