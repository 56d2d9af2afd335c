"""Bodies of requests: JSON whose text can be written down again."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser


class Bodies(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """JSON can hold half of a UTF-16 pair; no database or page can. Raises ValueError, which is answered 400."""
        given = json.loads(request.body)
        json.dumps(given, ensure_ascii=False).encode()
        return given
