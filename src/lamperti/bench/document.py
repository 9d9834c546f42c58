"""A page made of headings, paragraphs, tables and pictures, written as markdown or as one HTML file.

The HTML file holds its pictures and its style within itself and points to nothing outside: it can be sent as it is.
"""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    path: Path
    caption: str


@dataclass(frozen=True)
class Code:
    lines: tuple[str, ...]


Block = Heading | Paragraph | Table | Picture | Code

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #888; }
td.met { color: #00704f; font-weight: 600; } td.missed { color: #b34700; font-weight: 600; }
div.table { overflow-x: auto; } img { max-width: 100%; } figure { margin: 1rem 0; }
pre { background: #f5f5f5; padding: .6rem; overflow-x: auto; font-size: 12px; }
"""


def to_markdown(blocks: Sequence[Block], home: Path) -> str:
    """Markdown of a page in the folder ``home``, from which pictures are linked."""
    return "\n\n".join(_markdown(block, home) for block in blocks) + "\n"


def _markdown(block: Block, home: Path) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {block.text}"
        case Paragraph():
            return block.text
        case Code():
            return "\n".join(["```sh", *block.lines, "```"])
        case Picture():
            return f"![{block.caption}]({block.path.relative_to(home).as_posix()})\n\n*{block.caption}*"
        case Table():
            # a bar would end a cell
            rows = [[cell.replace("|", "\\|") for cell in row] for row in (block.header, *block.rows)]
            lines = [f"| {' | '.join(row)} |" for row in rows]
            return "\n".join([lines[0], "|" + "---|" * len(block.header), *lines[1:]])


def to_html(blocks: Sequence[Block], title: str) -> str:
    """One HTML file with everything in it."""
    body = "\n".join(map(_html, blocks))
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _html(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{html.escape(block.text)}</h{block.level}>"
        case Paragraph():
            return f"<p>{html.escape(block.text)}</p>"
        case Code():
            return f"<pre>{html.escape(chr(10).join(block.lines))}</pre>"
        case Picture():
            content = base64.b64encode(block.path.read_bytes()).decode()
            caption = html.escape(block.caption)
            image = f'<img alt="{caption}" src="data:image/png;base64,{content}">'
            return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
        case Table():
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in block.header)
            rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
            return f'<div class="table"><table><tr>{head}</tr>\n{rows}</table></div>'


def _cell(text: str) -> str:
    kind = f' class="{text}"' if text in ("met", "missed") else ""
    return f"<td{kind}>{html.escape(text)}</td>"
