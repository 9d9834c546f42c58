"""The page around the figures: one file that asks nothing of the network.

Every piece of foreign text goes through `escape`. Figures are JSON in inert elements; the only code is plotly.js and
the loop that draws, and the page's own policy (CSP) names both by their hash, so that nothing else would run.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence

from lamperti._text import visible
from lamperti.report._spec import Spec

_CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f9; color: #222; font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto,
  'DejaVu Sans', sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 24px 20px 60px; }
header h1 { font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; }
header p { margin: 0; color: #666; }
nav { margin: 14px 0 0; font-size: 13.5px; }
nav a { color: #0072b2; text-decoration: none; margin-right: 14px; white-space: nowrap; }
section { background: white; border: 1px solid #e3e6ea; border-radius: 8px; padding: 16px 20px 18px; margin-top: 18px; }
h2 { font-size: 19px; margin: 0 0 8px; }
h3 { font-size: 15px; margin: 18px 0 4px; }
p { margin: 6px 0; max-width: 92ch; overflow-wrap: anywhere; }
figure { margin: 10px 0 4px; }
figcaption { color: #666; font-size: 13px; max-width: 110ch; }
.plot { width: 100%; overflow: hidden; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 8px 0; font-size: 13.5px; }
th, td { padding: 4px 12px 4px 0; text-align: right; vertical-align: top; border-bottom: 1px solid #eceef1;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
th { color: #555; font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
table.words td, table.words th { text-align: left; }
p.verdict { font-size: 17px; font-weight: 600; border-left: 6px solid #9a9a9a; padding: 4px 12px; }
p.verdict.better { border-color: #009e73; }
p.verdict.worse, p.verdict.mixed { border-color: #d55e00; }
ul.caveats { list-style: none; padding: 0; margin: 8px 0; }
ul.caveats li { border-left: 4px solid #d55e00; background: #fff6ef; padding: 6px 12px; margin: 6px 0; }
ul.caveats li.note { border-color: #9a9a9a; background: #f6f7f9; }
pre { background: #f6f7f9; border: 1px solid #e3e6ea; border-radius: 6px; padding: 10px 12px; font-size: 12.5px;
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 8px 0; }
noscript p { color: #b00; }
@media (max-width: 700px) {
  main { padding: 12px 8px 40px; } section { padding: 12px 10px 14px; } header h1 { font-size: 21px; }
  nav a { display: inline-block; padding: 4px 0; }
  table:not(.words) th, table:not(.words) td { white-space: nowrap; overflow-wrap: normal; }
}
@media print {
  body { background: white; } main { max-width: none; padding: 0; } nav { display: none; }
  section { border: 0; padding: 0 0 8px; } figure, tr, li { break-inside: avoid; }
}
""".strip()

_DRAW = """
// On a phone, panels that stand side by side are put below each other, each as high as the figure was.
function stack(place, layout) {
  const panels = Object.keys(layout).filter((key) => key.startsWith('xaxis') && layout[key].domain)
    .sort((a, b) => layout[a].domain[0] - layout[b].domain[0]);
  const n = panels.length;
  if (n < 2 || window.innerWidth > 700) return;
  panels.forEach((key, i) => {
    const unit = 1 / (n - 0.28), top = 1 - i * unit, start = layout[key].domain[0], y = key.replace('x', 'y');
    for (const mark of layout.annotations || [])
      if (mark.x === start && mark.y === 1) Object.assign(mark, {x: 0, y: top});
    if (layout.legend2 && layout.legend2.x === start) Object.assign(layout.legend2, {x: 0, y: top});
    layout[key].domain = [0, 1];
    layout[y].domain = [Math.max(top - 0.72 * unit, 0), top];
  });
  place.style.height = n * parseInt(place.style.height) + 'px';
  if (layout.legend && layout.legend.y < 0) layout.legend.y /= n;
}
for (const place of document.querySelectorAll('.plot')) {
  const figure = JSON.parse(document.getElementById(place.id + '-data').textContent);
  stack(place, figure.layout);
  Plotly.newPlot(place, figure.data, figure.layout,
    {responsive: true, displaylogo: false, displayModeBar: 'scene' in figure.layout && window.innerWidth > 700}).then(
    () => { place.dataset.drawn = 'yes'; });
}
""".strip()


def escape(text: object) -> str:
    """Foreign text for HTML, on one line, with what would steer the page or the reader's eye written out."""
    return html.escape(visible(str(text)), quote=True)


def figure(spec: Spec) -> str:
    """A place for a figure, and its data. The caption is HTML already."""
    # "<" inside a string of JSON may be written as an escape: no closing tag can then occur in it.
    content = json.dumps({"data": spec.traces, "layout": spec.layout}, allow_nan=False, separators=(",", ":"))
    content = content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return (
        f'<figure><div class="plot" id="{spec.name}" style="height:{spec.height}px"></div>'
        f'<script type="application/json" id="{spec.name}-data">{content}</script>'
        f"<figcaption>{spec.caption}</figcaption></figure>"
    )


def table(header: Sequence[object], rows: Iterable[Sequence[object]], *, words: bool = False) -> str:
    """Cells are escaped; numbers should come as text."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    kind = ' class="words"' if words else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, a row each."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<div class="wide"><table class="words"><tbody>{body}</tbody></table></div>'


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


GENERATOR = '<meta name="generator" content="lamperti">'


def page(title: str, subtitle: str, sections: Sequence[tuple[str, str, str]], script: str) -> str:
    """The whole file. ``sections``: (anchor, title, HTML); ``script``: the source of plotly.js."""
    # A closing tag in the library's own strings would end the element early; in code, the escape means the same.
    # Browsers read all line ends as one kind, which the hash must be of.
    script = script.replace("</script", "<\\/script").replace("\r\n", "\n").replace("\r", "\n")
    allowed = " ".join(f"'sha256-{_digest(code)}'" for code in (script, _DRAW))
    # unsafe-eval: plotly.js makes the loops over the arrays of its 3-D figures at run time.
    policy = (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<a href="#{anchor}">{escape(name)}</a>' for anchor, name, _ in sections)
    body = "".join(
        f'<section id="{anchor}"><h2>{escape(name)}</h2>{content}</section>' for anchor, name, content in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{GENERATOR}"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main>'
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p><nav>{links}</nav></header>"
        "<noscript><p>The figures need JavaScript; tables and text do not.</p></noscript>"
        f"{body}</main>\n<script>{script}</script>\n<script>{_DRAW}</script></body></html>\n"
    )


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
