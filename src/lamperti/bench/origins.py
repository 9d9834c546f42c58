"""Which forecast origins of a recording may be looked at while the method is made, and which are for reports.

The origins, in order of time, are cut into blocks so long that futures two blocks apart do not overlap. Every third
block is kept for reports; the other two are for development. A choice that was made on the one is then judged on the
other, and both see the whole of the recording.
"""

from collections.abc import Sequence
from typing import Literal

Part = Literal["development", "report"]


def part_of(starts: Sequence[int], part: Part, block: int) -> list[int]:
    """The origins of one part; ``block`` is how many in a row have futures that overlap. Short recordings have shorter
    blocks, so that there are six and every part has two."""
    length = max(1, min(block, len(starts) // 6))
    return [start for i, start in enumerate(starts) if (i // length % 3 == 2) == (part == "report")]
