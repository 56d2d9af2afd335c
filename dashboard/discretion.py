"""Keeps tokens that stand in addresses out of logs."""

from __future__ import annotations

import logging
import re

_TOKEN_IN_PATH = re.compile(r"(/(?:s|embed|invited|welcome)/)[^/\s\"']+")


class HideTokens(logging.Filter):
    """Whoever reads a log must not come in by a share link or the first-visit link found there."""

    def filter(self, record: logging.LogRecord) -> bool:
        words = record.getMessage()
        hidden = _TOKEN_IN_PATH.sub(r"\1…", words)
        if hidden != words:
            record.msg, record.args = hidden, None
        return True
