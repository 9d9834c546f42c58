"""How many latent coordinates, and why: what is kept of the choice, with a model and in its file."""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True)
class DimensionCurve:
    """The number of latent coordinates that was taken, beside the others that it was compared with, and the reason."""

    dimension: int
    curve: tuple[tuple[int, float, float], ...]
    """Of each dimension the error of cross-validated predictions in sds of the data, and its standard error. None where
    the data is too short; one where the dimension was given."""
    reason: str

    def __post_init__(self):
        tried = [d for d, _, _ in self.curve]
        numbers = [value for _, error, se in self.curve for value in (error, se)]
        if tried != sorted(set(tried)) or min([self.dimension, *tried]) < 1:
            raise ValueError(f"{tried} are not dimensions in increasing order")
        if tried and self.dimension not in tried:
            raise ValueError(f"{self.dimension} is not one of the dimensions {tried}")
        if not all(math.isfinite(value) and value >= 0 for value in numbers):
            raise ValueError("errors by dimension must be finite and not negative")

    @property
    def compared(self) -> bool:
        """Whether there is a curve to draw."""
        return len(self.curve) > 1


_KEPT = TypeAdapter(DimensionCurve | None)


def pack_dimensions(choice: DimensionCurve | None) -> dict[str, Any] | None:
    """A choice as JSON."""
    return None if choice is None else dataclasses.asdict(choice)


def unpack_dimensions(content: Any, dimension: int | None) -> DimensionCurve | None:
    """The choice of a model of this dimension from JSON. Raises ValueError for whatever else is found there."""
    found = _KEPT.validate_json(json.dumps(content), strict=True)
    if found is not None and found.dimension != dimension:
        raise ValueError(f"the dimension is {dimension}, and {found.dimension} was chosen")
    return found
