"""How records show themselves: a line at the prompt, a small table in a notebook, a figure when asked for one."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lamperti._text import escaped, visible

_CELL = "text-align:left;padding:1px 14px 1px 0;vertical-align:top"


class Shown:
    """A record whose ``_facts`` are its text at the prompt and its table in a notebook."""

    def _facts(self) -> Mapping[str, str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}: {visible(value)}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts().items())


def html_table(title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()) -> str:
    """A title and a table of text; whatever comes from outside is escaped."""
    head = "".join(f'<th style="{_CELL}">{_escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    first = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<div><strong>{_escape(title)}</strong><table>{first}<tbody>{body}</tbody></table></div>"


def html_text(text: str) -> str:
    """Text of several lines as it is printed."""
    return f'<pre style="line-height:1.3">{html.escape(escaped(text))}</pre>'


def figures() -> Any:
    """`lamperti.viz`, which stands above all that has a figure and loads matplotlib: imported when one is asked for."""
    from lamperti import viz

    return viz


def _escape(cell: object) -> str:
    return html.escape(visible(str(cell)), quote=True)
