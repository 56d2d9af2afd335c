"""Why a step takes as long as it does, and what to try: rules with numbers, from what was measured and the simulator.

`seen` is what was measured, `pieces` cuts a step's time into what each cause costs, `remedies` has for each cause the
changes that the simulator says would help.
"""

from dashboard.charts.explain.causes import explanation

__all__ = ["explanation"]
