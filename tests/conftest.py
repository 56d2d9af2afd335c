"""Searches for examples take what time they need: beside other tests a machine is slow now and then."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("in company", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("in company")
