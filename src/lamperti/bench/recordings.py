"""Real recordings: where they are, how each is split, and how they are read.

Files are looked for in one folder (``--data``, or the variable ``LAMPERTI_DATA``); none comes with the library. Sizes,
contexts and horizons of all recordings are decided here and nowhere else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lamperti._errors import DependencyError
from lamperti._typing import Float
from lamperti.bench.methods import BASELINES, SEASON
from lamperti.data.reading import read
from lamperti.data.series import Series

VARIABLE = "LAMPERTI_DATA"


class Split(NamedTuple):
    """What is learned from, and the recording in which futures are forecast, from ``first`` on at the earliest."""

    train: Series
    tested: Series
    first: int


@dataclass(frozen=True)
class Recording:
    """One recording: its first samples to learn from, forecast origins in the rest. Lengths count samples."""

    name: str
    file: str
    columns: tuple[str, ...]
    train: int
    context: int
    """What a forecast sees; it may reach back into the samples that were learned from."""
    horizons: tuple[int, ...]
    stride: int
    """Samples between forecast origins."""
    dt: float | None = 1.0
    """Of a recording that is taken without its times; None for one with them."""
    time: str | None = None
    """The column of the times, where a reader would not find it."""
    missing: str = "refuse"
    logarithm: bool = False
    stop: int | None = None
    """Samples that are looked at; all by default."""
    tested: tuple[str, ...] | None = None
    """Columns of a second recording, in which all futures are, from after the first context on."""
    relaxation: float | None = None
    """Of a recording known to be an Ornstein-Uhlenbeck process: its relaxation time, from physics."""
    baselines: tuple[str, ...] = (*BASELINES, SEASON)

    def load(self, folder: Path) -> Split:
        """Read as a user would, and split."""
        series = self._read(folder, self.columns)[: self.stop]
        if self.tested is None:
            return Split(series[: self.train], series, max(self.train, self.context))
        other = self._read(folder, self.tested)
        return Split(series[: self.train], Series(other.values, times=other.times, names=series.names), self.context)

    def origins(self, split: Split) -> range:
        """First samples of the futures that are forecast."""
        return range(split.first, len(split.tested) - max(self.horizons) + 1, self.stride)

    def _read(self, folder: Path, columns: tuple[str, ...]) -> Series:
        if self.file.endswith(".npz"):
            arrays = _arrays(folder, self.file)
            found = Series(np.column_stack([arrays[name].astype(float) for name in columns]), dt=self.dt)
        else:
            (found,) = read(_found(folder, self.file), columns=list(columns), time=self.time, missing=self.missing)
        if self.dt is None and not self.logarithm:
            return found
        values = np.log10(found.values) if self.logarithm else found.values
        times = None if self.dt is not None else found.times
        return Series(values, times=times, dt=self.dt, names=found.names, missing=self.missing)


@dataclass(frozen=True)
class Walks:
    """Motion capture in the split of the latent-SDE literature: the rest of a walk from its first frames."""

    name: str = "mocap"
    file: str = "mocap35.npz"
    frames: int = 3
    # who needs a longer past cannot take part
    baselines: tuple[str, ...] = ("climatology", "persistence")

    def load(self, folder: Path) -> tuple[Float[np.ndarray, "R T P"], Float[np.ndarray, "K T P"]]:
        """Training and test walks. The validation walks are left alone: the library holds out its own."""
        arrays = _arrays(folder, self.file)
        return arrays["Xtr"].astype(float), arrays["Xtest"].astype(float)


RECORDINGS: dict[str, Recording | Walks] = {
    one.name: one
    for one in (
        Recording("laser", "santafe_laser_A.csv", ("intensity",), 6000, 200, (1, 5, 10, 20, 50), 50),
        # a bead in water; metres every 6.9 ms
        Recording(
            "optical_trap", "optical_trap_water.npz", ("x_m",), 20_000, 100, (1, 2, 5, 10), 50, dt=0.006896459763984265,
            relaxation=0.0198,
        ),
        Recording("lynx", "lynx_mackenzie_1821_1934.csv", ("lynx",), 80, 40, (1, 2, 5, 10), 1, logarithm=True),
        Recording("sunspots", "sunspots_yearly.csv", ("SUNACTIVITY",), 200, 60, (1, 2, 5, 10), 1),
        # an electrocardiogram at 90 Hz: two minutes, then the third; a beat takes about 60 samples
        Recording(
            "ecg", "ecg_mitbih208_90hz.csv", ("ecg",), 10_800, 270, (1, 6, 24, 60), 15, dt=None, stop=16_200,
        ),
        # months, of different lengths; forty years, then twenty
        Recording("elnino", "elnino_monthly.csv", ("anomaly",), 480, 60, (1, 3, 6, 12), 1, dt=None),
        # weeks, of which 59 are missing, a trend and a season; thirty years, then fourteen
        Recording("co2", "co2_weekly.csv", ("co2",), 1566, 156, (1, 4, 13, 52), 4, dt=None, missing="nan"),
        Recording(
            "hare_lynx", "hare_lynx_1845_1935.csv", ("hare", "lynx"), 50, 30, (1, 2, 5, 10), 1, dt=None, time="year",
            logarithm=True,
        ),
        # two records of the lower tank's level every 4 s, under pumps that nobody tells of
        Recording(
            "tanks", "cascaded_tanks_overflow.csv", ("yEst",), 1024, 100, (1, 4, 16, 64), 8, dt=4.0, tested=("yVal",),
        ),
        Walks(),
    )
}  # fmt: skip


def _arrays(folder: Path, file: str) -> dict[str, np.ndarray]:
    with np.load(_found(folder, file), allow_pickle=False) as kept:
        return dict(kept)


def _found(folder: Path, file: str) -> Path:
    path = folder / file
    if not path.is_file():
        raise DependencyError(f"{file} is not in the data folder. Give its folder with --data, or set {VARIABLE}.")
    return path
