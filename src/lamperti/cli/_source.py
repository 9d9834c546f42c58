"""The data file of a command, and how it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from lamperti.data.series import Series


@Parameter(name="*")
@dataclass(frozen=True)
class Source:
    """Options of reading.

    Args:
        columns: channels, separated by commas; by default all but time and id, or those of the model
        time: column of the sampling times (numbers or ISO dates); "time" or "t" is found without asking
        id: column whose values split the rows into series
        dt: sampling step, for a file without times
        missing: "nan" takes empty cells as missing values
    """

    columns: str | None = None
    time: str | None = None
    id: str | None = None
    dt: float | None = None
    missing: Literal["refuse", "nan"] = "refuse"

    def read(self, path: Path, channels: Sequence[str] | None = None) -> list[Series]:
        """The series of a file; ``channels`` are read unless the user named others."""
        from lamperti.data.reading import read_csv  # loads pandas

        named = None if self.columns is None else [name.strip() for name in self.columns.split(",")]
        return read_csv(path, named or channels, self.time, self.id, self.dt, self.missing)
