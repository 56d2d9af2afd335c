"""How much of what ranks recorded is sealed, and how much of it never will be."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.trace.manifest import Manifest


@dataclass(frozen=True)
class Tally:
    frames_sealed: int = 0
    frames_lost: int = 0  # missing, or not to be read
    spans_sealed: int = 0
    spans_lost: int = 0

    @classmethod
    def of(cls, manifest: Manifest) -> Tally:
        ranks = manifest.ranks.values()
        missing = sum(rank.missing_frames for rank in ranks)
        came = sum(rank.sequence for rank in ranks) - missing
        return cls(came, missing + manifest.bad_frames, manifest.spans, manifest.dropped_spans)

    def plus_growth(self, before: Tally, after: Tally) -> Tally:
        """This tally and what has come to another one meanwhile."""
        return Tally(
            self.frames_sealed + after.frames_sealed - before.frames_sealed,
            self.frames_lost + after.frames_lost - before.frames_lost,
            self.spans_sealed + after.spans_sealed - before.spans_sealed,
            self.spans_lost + after.spans_lost - before.spans_lost,
        )
