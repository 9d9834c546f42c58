"""A curve drawn with braille dots: two columns and four rows of dots a character."""

import numpy as np

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def braille(values: np.ndarray, width: int, height: int) -> list[str]:
    """``height`` lines of ``width`` characters: the range of the values in each of 2 x ``width`` columns of dots.

    Columns without a finite value stay empty, so that gaps show.
    """
    columns, rows = 2 * width, 4 * height
    finite = np.isfinite(values)
    if not finite.any():
        return [" " * width] * height
    half = values / 2  # the range of values near the largest float would overflow
    low, high = half[finite].min(), half[finite].max()
    place = np.full(len(values), 0.5) if high == low else (half - low) / (high - low)
    canvas = np.zeros((rows, columns), dtype=bool)
    edges = np.linspace(0, len(values), columns + 1).round().astype(int)
    before: tuple[int, int] | None = None
    for c, (a, b) in enumerate(zip(edges, np.maximum(edges[1:], edges[:-1] + 1), strict=False)):
        seen = place[a:b][finite[a:b]]
        if seen.size:
            top, bottom = (round((1 - p) * (rows - 1)) for p in (seen.max(), seen.min()))
            joined = before or (top, bottom)  # up or down to where the curve came from
            canvas[min(top, joined[1]) : max(bottom, joined[0]) + 1, c] = True
            before = (top, bottom)
        else:
            before = None
    cells = canvas.reshape(height, 4, width, 2)
    codes = 0x2800 + np.einsum("hiwj,ij->hw", cells.astype(int), _DOTS)
    return ["".join(map(chr, line)) for line in codes]
