"""What a small drawing is made of: boxes with words in them or beside them, in units of the drawing."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH = 640.0


@dataclass(frozen=True)
class Box:
    """`kind` is a kind of span, whose colour it has, or "plain" or "empty"."""

    x: float
    y: float
    width: float
    height: float
    kind: str = "plain"
    word: str = ""

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)

    @property
    def baseline(self) -> float:
        return round(self.y + self.height / 2 + 4, 1)


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    word: str
    anchor: str = "start"


@dataclass
class Drawing:
    """`title` says in words what is to be seen."""

    title: str
    height: float
    boxes: list[Box] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    width: float = WIDTH

    def box(self, x: float, y: float, width: float, height: float, kind: str = "plain", word: str = "") -> None:
        self.boxes.append(Box(round(x, 1), round(y, 1), round(width, 1), round(height, 1), kind, word))

    def label(self, x: float, y: float, word: str, anchor: str = "start") -> None:
        self.labels.append(Label(round(x, 1), round(y, 1), word, anchor))


def bars(title: str, rows: list[tuple[str, list[tuple[str, float]], str]], longest: float | None = None) -> Drawing:
    """A bar a row: its name, its parts as kind and size, and what stands behind it."""
    left, behind, row = 150.0, 92.0, 34.0
    most = longest or max(sum(size for _, size in parts) for _, parts, _ in rows)
    made = Drawing(title, row * len(rows) - 8)
    for at, (name, parts, words) in enumerate(rows):
        x, y = left, at * row
        made.label(left - 10, y + 17, name, "end")
        for kind, size in parts:
            width = size / most * (WIDTH - left - behind)
            made.box(x, y, max(width, 1), 26, kind)
            x += width
        made.label(x + 8, y + 17, words)
    return made
