"""Real recordings: where they are, how each is split, and how they are read.

Files are looked for in one folder (``--data``, or the variable ``LAMPERTI_DATA``); none comes with the library.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lamperti._errors import DependencyError
from lamperti._typing import Float
from lamperti.bench.methods import BASELINES
from lamperti.data.reading import read
from lamperti.data.series import Series

VARIABLE = "LAMPERTI_DATA"


@dataclass(frozen=True)
class Recording:
    """One scalar recording: its first samples to learn from, forecast origins in the rest. Lengths count samples."""

    name: str
    file: str
    column: str
    train: int
    context: int
    """What a forecast sees; it may reach back into the samples that were learned from."""
    horizons: tuple[int, ...]
    stride: int
    """Samples between forecast origins."""
    dt: float = 1.0
    logarithm: bool = False
    relaxation: float | None = None
    """Of a recording known to be an Ornstein-Uhlenbeck process: its relaxation time, from physics."""
    baselines: tuple[str, ...] = BASELINES

    def load(self, folder: Path) -> Series:
        values = _column(folder, self.file, self.column)
        return Series(np.log10(values) if self.logarithm else values, dt=self.dt)

    def origins(self, length: int) -> range:
        """First samples of the futures that are forecast."""
        return range(max(self.train, self.context), length - max(self.horizons) + 1, self.stride)


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
        Recording("laser", "santafe_laser_A.csv", "intensity", 6000, 200, (1, 5, 10, 20, 50), 50),
        # a bead in water; metres every 6.9 ms
        Recording(
            "optical_trap", "optical_trap_water.npz", "x_m", 20_000, 100, (1, 2, 5, 10), 50, dt=0.006896459763984265,
            relaxation=0.0198,
        ),
        Recording("lynx", "lynx_mackenzie_1821_1934.csv", "lynx", 80, 40, (1, 2, 5, 10), 1, logarithm=True),
        Recording("sunspots", "sunspots_yearly.csv", "SUNACTIVITY", 200, 60, (1, 2, 5, 10), 1),
        Walks(),
    )
}  # fmt: skip


def _column(folder: Path, file: str, column: str) -> np.ndarray:
    if file.endswith(".npz"):
        return _arrays(folder, file)[column].astype(float)
    (series,) = read(_found(folder, file), columns=[column])
    return series.values[:, 0]


def _arrays(folder: Path, file: str) -> dict[str, np.ndarray]:
    with np.load(_found(folder, file), allow_pickle=False) as kept:
        return dict(kept)


def _found(folder: Path, file: str) -> Path:
    path = folder / file
    if not path.is_file():
        raise DependencyError(f"{file} is not in the data folder. Give its folder with --data, or set {VARIABLE}.")
    return path
