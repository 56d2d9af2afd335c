"""Both themes hold what they promise: the same colours named, and enough contrast to read and to see by."""

import re

import pytest

from dashboard.conf import ROOT
from trainer.trace.kinds import Kind

TOKENS = (ROOT / "static/css/tokens.css").read_text()


def colours(theme):
    light, dark = re.split(r'\[data-theme="dark"\] \{', TOKENS)
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", light if theme == "light" else dark.split("}")[0]))


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.fixture(params=["light", "dark"])
def theme(request):
    return colours(request.param)


def test_both_themes_name_the_same_colours():
    assert set(colours("light")) == set(colours("dark"))


@pytest.mark.parametrize("surface", ["bg", "card", "card-2"])
@pytest.mark.parametrize("ink", ["text", "muted", "accent", "ok", "warn", "bad"])
def test_words_can_be_read(theme, ink, surface):
    assert contrast(theme[ink], theme[surface]) >= 4.5


@pytest.mark.parametrize("ink", ["ok", "warn", "bad", "accent", "text"])
def test_words_on_a_tint_can_be_read(theme, ink):
    tint = "accent" if ink == "text" else ink
    assert contrast(theme[ink], theme[f"{tint}-soft"]) >= 4.5


def test_words_on_the_accent_and_edges_of_controls_can_be_seen(theme):
    assert contrast(theme["accent-text"], theme["accent"]) >= 4.5
    assert contrast(theme["line-strong"], theme["card"]) >= 3


WORK = sorted({name for name in colours("dark") if name.startswith("kind-")} - {"kind-wait", "kind-step"})


@pytest.mark.parametrize("kind", WORK)
def test_bars_can_be_told_from_their_lane_and_their_labels_read(theme, kind):
    assert contrast(theme[kind], theme["lane"]) >= 3
    assert contrast(theme[kind], theme["on-kind"]) >= 4.5


def test_every_kind_of_work_has_a_colour_and_a_class():
    kinds = {kind.name.lower().replace("_", "-") for kind in Kind}
    assert set(re.findall(r"--kind-([\w-]+):", TOKENS)) == kinds
    assert set(re.findall(r"\.kind-([\w-]+) ", (ROOT / "static/css/kinds.css").read_text())) == kinds
