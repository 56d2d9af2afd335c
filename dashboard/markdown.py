"""What people write, as HTML that is safe to show: Markdown by markdown-it, in which HTML is text.

Links lead to http, https and mail addresses, or to a view of the same page (#…); pictures are left out, since
fetching them would tell another server who reads. The pages' policy would stop scripts besides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

_LINK = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w@/])@([\w.+@-]{1,150})")


def names_in(text: str) -> set[str]:
    """Names that `text` mentions, in every reading: "@ada." may mean ada."""
    return {name for found in _MENTION.findall(text) for name in (found, found.rstrip(".+-@"))}


def html(text: str, names: Collection[str] = ()) -> SafeString:
    """`names`: people; an @ before one of them is shown as a mention."""
    return mark_safe(_markdown.render(text, {"names": names}))


def _text(renderer: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    return _MENTION.sub(lambda found: _mention(found, env["names"]), escape(tokens[at].content))


def _mention(found: re.Match[str], names: Collection[str]) -> str:
    for name in (found[1], found[1].rstrip(".+-@")):
        if name in names:
            return f'<b class="mention">@{name}</b>{found[1][len(name):]}'
    return found[0]


def _link_open(renderer: Any, tokens: Sequence[Token], at: int, options: Any, env: dict[str, Any]) -> str:
    if not str(tokens[at].attrGet("href")).startswith("#"):
        tokens[at].attrSet("rel", "nofollow noopener noreferrer")
        tokens[at].attrSet("target", "_blank")
    return str(renderer.renderToken(tokens, at, options, env))


def _make() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("strikethrough").disable("image")
    made.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign]
    made.add_render_rule("text", _text)
    made.add_render_rule("link_open", _link_open)
    return made


_markdown = _make()
