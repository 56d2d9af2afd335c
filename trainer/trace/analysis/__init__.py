"""What a run's spans say about it: pure functions from columns to figures, and a driver that streams a store.

Figures are defined in `trainer.trace.figures`. Whatever is computed here of steps is computed of whole steps:
live by the recorder as soon as every rank is through, or later from the segments, by the same functions.
"""
