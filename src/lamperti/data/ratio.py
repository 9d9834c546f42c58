"""Packed files that unpack to far more than data does: made to fill a memory."""

from lamperti._errors import SeriesError

# Text packs to a tenth, repetitive text to a fiftieth; small files may do as they like.
_MAX_RATIO, _HARMLESS = 200, 1 << 24


def check_ratio(what: str, packed: int, unpacked: int) -> None:
    """Refuse ``what`` if its ``packed`` bytes become ``unpacked`` ones, more than any data would."""
    if unpacked > max(_HARMLESS, _MAX_RATIO * packed):
        raise SeriesError(f"{what} unpacks to more than {_MAX_RATIO} times its size, which data does not.")
