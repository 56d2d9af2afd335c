"""What is seen of a run as text: what stands behind the # of its page's address, as static/js/core/address.js writes it."""

from __future__ import annotations

import re

LONGEST = 3000  # a few hundred folded groups and a search
_SHOWN = re.compile(r"[\w=&,.%:~!*'()+-]*\Z", re.ASCII)


def can_be_shown(view: str) -> bool:
    return len(view) <= LONGEST and _SHOWN.match(view) is not None
