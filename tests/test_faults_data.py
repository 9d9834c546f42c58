"""Faults of data, each through the library and through the command line: one named error, one sentence, no traceback.

The numbers are those of docs/faults.md.
"""

import gzip
import io
import json
import os
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.io import netcdf_file

import lamperti as lp
from lamperti.cli import _remembered, main
from lamperti.cli._source import Source
from lamperti.data.series import DATES

RNG = np.random.default_rng(1)
GOOD = np.sin(np.arange(60) * 0.3) + 0.1 * RNG.normal(size=60)


def csv(values, times=None, name="y"):
    times = np.arange(len(values)) if times is None else times
    return f"time,{name}\n" + "".join(f"{t},{v}\n" for t, v in zip(times, values, strict=True))


def changed(value, at=7):
    cells = [repr(float(v)) for v in GOOD]
    cells[at] = value
    return csv(cells)


@dataclass
class Fault:
    """A file, the options it is read with, and what is said of it; ``said`` matches the error, or with ``passes`` a
    problem or a repair of the report. ``holds`` then is true of the series, ``reports`` of the report."""

    number: int
    what: str
    content: Any
    said: str
    options: dict[str, Any] = field(default_factory=dict)
    passes: bool = False
    holds: Callable[[list[lp.Series]], bool] = lambda series: True
    reports: Callable[[dict[str, Any]], bool] = lambda report: True
    name: str = "data.csv"


def is_good(series, values=GOOD):
    """One series, read without a change."""
    (one,) = series
    return one.mask.all() and one.values[:, 0].tolist() == list(values) and one.steps.tolist() == [1.0] * 59


def masked_at_7(series):
    (one,) = series
    rest = np.delete(np.arange(60), 7)
    return (~one.mask[:, 0]).nonzero()[0].tolist() == [7] and (one.values[rest, 0] == GOOD[rest]).all()


def summed_up(series, missing=0, low=None, high=None):
    """A report of series of these lengths, and of one channel with these extremes."""

    def look(report):
        channel = report["channels"][0]
        lengths = [one["length"] for one in report["series"]]
        extremes = low is None or (channel["low"], channel["high"]) == (low, high)
        return lengths == series and channel["missing"] == missing and extremes and report["ok"]

    return look


def standardised(series):
    z = lp.data.Scaler.from_series(series).values(series[0].values)
    return abs(z.mean()) < 1e-12 and abs(z.std() - 1) < 1e-12


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def npz(array):
    content = io.BytesIO()
    np.savez_compressed(content, y=array)
    return content.getvalue()


def netcdf(times, **attributes):
    """The good values as a classic NetCDF file; the unit and calendar of its times, the attributes of its values."""
    content = io.BytesIO()
    file = netcdf_file(content, "w")
    file.createDimension("time", 60)
    for name, values, own in (("time", np.arange(60, dtype="i4"), times), ("y", GOOD, attributes)):
        variable = file.createVariable(name, values.dtype, ("time",))
        variable[:] = values
        for key, value in own.items():
            setattr(variable, key, value)
    file.flush()
    return content.getvalue()


IRREGULAR = np.cumsum(RNG.exponential(size=60))
TWO = "time,y,flat\n" + "".join(f"{t},{v},5\n" for t, v in enumerate(GOOD))
VALVE = "time,y,valve\n" + "".join(f"{t},{v},{'open' if t % 2 else 'shut'}\n" for t, v in enumerate(GOOD))
RAGGED = "id,y\n" + "a,1\na,2\nb,1\nb,3\nb,2\n" * 9
HUGE = b"\x93NUMPY\x01\x00\x4a\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }      \n"
COMMAS = changed("1#100").replace(",", ";").replace(".", ",").replace("#", ".")
CALENDAR = pd.date_range("2023-01-20", periods=60).strftime("%Y%m%d")
YEAR_1 = {"units": "days since 1-1-1", "calendar": "proleptic_gregorian"}
REFUSED, REPORTED = False, True
FAULTS = [
    Fault(1, "NaN", changed("nan"), r"NaN .*'y': 1; the first in row 7"),
    Fault(
        1, "NaN declared", changed("nan"), "transitions", {"missing": "nan"}, REPORTED, masked_at_7, summed_up([60], 1)
    ),
    Fault(2, "infinite", changed("-inf"), "row 7, column 'y' holds -inf"),
    Fault(3, "all NaN", csv(["nan"] * 60, name="flow"), "'flow' has no observed value", {"missing": "nan"}),
    Fault(4, "constant", csv(np.ones(60)), "it does not vary", {}, REPORTED),
    Fault(4, "constant only", csv(np.ones(60)), "all columns are constant", {"drop_constant": True}),
    Fault(
        4,
        "constant dropped",
        TWO,
        "constant column 'flat' was left out",
        {"drop_constant": True},
        REPORTED,
        lambda series: is_good(series) and series[0].names == ("y",),
        lambda report: [channel["name"] for channel in report["channels"]] == ["y"],
    ),
    Fault(5, "nearly constant", csv(1 + 1e-9 * GOOD), r"nearly constant: its sd is [67]\.\d+e-10", {}, REPORTED),
    Fault(
        6,
        "1e300",
        csv(1e300 * GOOD),
        "transitions",
        {},
        REPORTED,
        lambda series: is_good(series, 1e300 * GOOD) and standardised(series),
        summed_up([60], 0, 1e300 * GOOD.min(), 1e300 * GOOD.max()),
    ),
    Fault(6, "beyond the largest float", changed("1e400"), "row 7, column 'y' holds inf"),
    Fault(6, "too large to standardise", csv(1.7e308 * np.sign(GOOD)), "overflow", {}, REPORTED),
    Fault(
        7,
        "1e-300",
        csv(1e-300 * GOOD),
        "transitions",
        {},
        REPORTED,
        lambda series: is_good(series, 1e-300 * GOOD) and standardised(series),
        summed_up([60], 0, 1e-300 * GOOD.min(), 1e-300 * GOOD.max()),
    ),
    Fault(7, "denormal", csv(5e-324 * np.arange(60)), "underflow", {}, REPORTED),
    Fault(8, "offset", csv(1e9 + 1e-3 * GOOD), "in float32 all of them", {}, REPORTED),
    Fault(9, "complex", changed("1+2j"), r"column 'y', row 7 holds '1\+2j', which is not a number"),
    Fault(9, "complex array", npy(GOOD + 1j), "real numbers, not complex numbers", name="a.npy"),
    Fault(10, "mixed", changed("high"), "column 'y', row 7 holds 'high', which is not a number"),
    Fault(11, "large integers", csv([2**53 + 1 + int(k * k) for k in range(60)]), r"above 2\*\*53", {}, REPORTED),
    Fault(
        11,
        "large integers and a gap",
        csv([2**53 + 1 + int(k * k) for k in range(59)] + [""]),
        r"largest magnitude 9007199254744357\)",
        {"missing": "nan"},
        REPORTED,
        reports=summed_up([60], 1),
    ),
    Fault(12, "decimal comma", changed('"1,5"'), "row 7 holds '1,5'.*decimal"),
    Fault(12, "thousands", changed('"1,234"'), "row 7 holds '1,234'.*thousands"),
    Fault(
        12,
        "semicolons and commas",
        COMMAS.replace("y", "y;z").replace("\n", ";1\n").replace("y;z;1", "y;z"),
        "separated by semicolons.*separator",
    ),
    Fault(13, "booleans", csv([bool(k % 2) for k in range(60)]), "column 'y' holds booleans.*codes"),
    Fault(13, "categories", csv(["lo", "hi"] * 30), "row 0 holds 'lo'"),
    Fault(
        13,
        "categories declared",
        VALVE,
        "column 'valve' was numbered: open=0, shut=1",
        {"codes": "valve"},
        REPORTED,
        lambda series: series[0].values[:4, 1].tolist() == [1, 0, 1, 0],
        lambda report: report["channels"][1]["high"] == 1 and report["ok"],
    ),
    Fault(14, "empty", "", "the file is empty"),
    Fault(14, "header only", "time,y\n", "header but no rows"),
    Fault(14, "no columns", "time\n1\n2\n", "no column is left"),
    Fault(15, "one sample", csv([1.0]), "at least 2 samples; got 1"),
    Fault(16, "short", csv(GOOD[:6]), "5 transitions between samples; learning needs at least 10", {}, REPORTED),
    Fault(
        17,
        "ragged",
        RAGGED,
        "transitions",
        {"id": "id"},
        REPORTED,
        lambda series: [s.values[:3, 0].tolist() for s in series] == [[1, 2, 1], [1, 3, 2]],
        summed_up([18, 27], 0, 1, 3),
    ),
    Fault(18, "duplicate times", csv(GOOD, np.r_[0:59, 58]), "row 59 has 58 after 58.*duplicates"),
    Fault(
        18,
        "duplicate times merged",
        csv([*GOOD, 99.0], np.r_[0:60, 59]),
        r"1 rows with a time that came before were merged \(first\)",
        {"duplicates": "first"},
        REPORTED,
        is_good,
        summed_up([60], 0, GOOD.min(), GOOD.max()),
    ),
    Fault(19, "unsorted", csv(GOOD, np.arange(60)[::-1]), "row 1 has 58 after 59.*sort"),
    Fault(
        19,
        "sorted",
        csv(GOOD[::-1], np.arange(60)[::-1]),
        r"rows were sorted by time \(60 of 60 moved\)",
        {"sort": True},
        REPORTED,
        is_good,
        summed_up([60], 0, GOOD.min(), GOOD.max()),
    ),
    Fault(
        20,
        "irregular",
        csv(GOOD, IRREGULAR),
        "true lengths are used",
        {},
        REPORTED,
        lambda series: series[0].steps.tolist() == np.diff(IRREGULAR).tolist(),
        lambda report: (
            report["sampling"]["kind"] == "irregular"
            and report["sampling"]["dt"] == np.median(np.diff(IRREGULAR))
            and report["series"][0]["end"] == IRREGULAR[-1]
        ),
    ),
    Fault(21, "gap", csv(GOOD, np.r_[0:30, 90:120]), "1 gap, about 60 samples", {}, REPORTED),
    Fault(
        22, "no time", csv(GOOD, ["2024-01-01", "", *pd.date_range("2024-01-03", periods=58).date]), "row 1 has no time"
    ),
    Fault(
        22,
        "clock put back",
        csv(GOOD, pd.date_range("2024-10-27", periods=60, freq="h")),
        "cannot be placed in the time zone",
        {"timezone": "Europe/Madrid"},
    ),
    Fault(
        22,
        "clock put forward",
        csv(GOOD, pd.date_range("2024-03-31", periods=60, freq="h")),
        "cannot be placed in the time zone",
        {"timezone": "Europe/Madrid"},
    ),
    Fault(22, "mixed offsets", "time,y\n2024-01-01T00:00Z,1\n2024-01-01T01:00,2\n", "with and without an offset"),
    Fault(23, "column missing", csv(GOOD), "no column 'flow'. It has: time, y", {"columns": "flow"}),
    Fault(25, "duplicate names", "y,y\n1,2\n3,4\n", "'y' comes twice"),
    Fault(25, "empty name", "y,\n1,2\n3,4\n", "channel 1 has the name ''"),
    Fault(26, "UTF-16", csv(GOOD).encode("utf-16"), "UTF-16"),
    Fault(26, "Latin-1", csv(GOOD, name="débit").encode("latin-1"), "not UTF-8 text.*encoding"),
    Fault(26, "NUL", csv(GOOD).encode().replace(b"59,", b"59\0,"), "NUL"),
    Fault(
        26, "BOM and CRLF", ("\ufeff" + csv(GOOD)).replace("\n", "\r\n").encode(), "transitions", {}, REPORTED, is_good
    ),
    Fault(27, "truncated Parquet", b"PAR1" + b"\0" * 99, "not an intact Parquet", name="a.parquet"),
    Fault(27, "truncated NetCDF", b"CDF\x01" + b"\0\0\0\x09" * 9, "not an intact NetCDF", name="a.nc"),
    Fault(
        28, "gzip bomb", gzip.compress(b"y\n" + b"1\n" * 10_000_000), "more than 200 times its size", name="a.csv.gz"
    ),
    Fault(28, "huge declared shape", HUGE, "declares 79999999999992 bytes, more than", name="a.npy"),
    Fault(28, "declared size", csv(GOOD), "more than 100 bytes", {"max_bytes": 100}),
    Fault(30, "crafted HDF5", b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 9, "not an intact NetCDF", name="a.h5"),
    Fault(33, "object file", b"\x80\x04K\x01.", "could run code", name="a.pkl"),
    Fault(
        64, "groups of one digit", changed('"1,5"'), "row 7 holds '1,5', .*three digits.*decimal", {"thousands": ","}
    ),
    Fault(
        64,
        "mark not declared",
        COMMAS,
        "row 7 holds '1.100', .*not declared.*thousands",
        {"decimal": ",", "separator": ";"},
    ),
    Fault(
        65,
        "year 1",
        netcdf(YEAR_1),
        "taken as the year 1\\.",
        {},
        REPORTED,
        lambda series: series[0].times[0] == -62135596800,
        lambda report: report["series"][0]["start"] == -62135596800,
        "a.nc",
    ),
    Fault(
        65,
        "calendar without leap years",
        netcdf({"units": "days since 2000-01-01", "calendar": "noleap"}),
        "'time' should be the times but it uses the calendar 'noleap'.*columns.*dt",
        name="a.nc",
    ),
    Fault(66, "scale in words", netcdf({}, scale_factor="half"), "scale_factor 'half', which is no", name="a.nc"),
    Fault(
        66,
        "valid range",
        netcdf({}, valid_max=0.9),
        "outside its valid range, -inf to 0.9; they count as missing",
        {"missing": "nan"},
        REPORTED,
        lambda series: (series[0].mask[:, 0] == (GOOD <= 0.9)).all(),
        lambda report: report["channels"][0]["missing"] == (GOOD > 0.9).sum(),
        "a.nc",
    ),
    Fault(69, "dates as numbers", csv(GOOD, CALENDAR), "20230120.*%Y%m%d.*time.unit"),
    Fault(
        69,
        "dates as numbers, declared",
        csv(GOOD, CALENDAR),
        "transitions",
        {"time_format": "%Y%m%d"},
        REPORTED,
        lambda series: series[0].steps.tolist() == [86400.0] * 59,
        lambda report: report["sampling"]["dt"] == 86400 and report["time_unit"] == DATES,
    ),
    Fault(
        70, "header of numbers", "0,1\n" + "".join(f"{v},{v * v}\n" for v in GOOD), "names of columns or data.*header"
    ),
    Fault(
        70,
        "header of numbers, declared",
        "2019\n" + "".join(f"{v}\n" for v in GOOD),
        "transitions",
        {"header": True},
        REPORTED,
        lambda series: is_good(series) and series[0].names == ("2019",),
        lambda report: report["channels"][0]["name"] == "2019",
    ),
    Fault(
        70,
        "index without a name",
        pd.DataFrame({"y": GOOD}).to_csv(),
        "no name and counts the rows; it was left out",
        {},
        REPORTED,
        is_good,
        summed_up([60]),
    ),
    Fault(70, "two times", csv(GOOD, name="date"), "'time' and 'date' may both be the times"),
    Fault(71, "footer", csv(GOOD) + "Source: the ward\n", "'time', row 60 holds 'Source: the ward'.*line 62"),
    Fault(71, "header again", csv(GOOD) + csv(GOOD), "'time', row 60 holds 'time', which is the header again.*line 62"),
    Fault(71, "underscore", changed("1_000"), "'y', row 7 holds '1_000'.*thousands.*line 9"),
    Fault(72, "NPZ bomb", npz(np.zeros(3_000_000)), "archive unpacks to more than 200 times its size", name="a.npz"),
    Fault(
        73,
        "name that commands",
        csv(GOOD, name="fl\x1bo\u202ew"),
        "characters that cannot be seen were removed from the names of columns: time, flow",
        {},
        REPORTED,
        lambda series: series[0].names == ("flow",),
        lambda report: report["channels"][0]["name"] == "flow",
    ),
]
IDS = [f"{fault.number} {fault.what}" for fault in FAULTS]


def _write(fault, folder):
    path = folder / fault.name
    path.write_bytes(fault.content if isinstance(fault.content, bytes) else fault.content.encode())
    return path


def _check_report(fault, report):
    said = [*(problem["message"] for problem in report["problems"]), *report["repairs"]]
    assert any(re.search(fault.said, text) for text in said), said
    assert fault.reports(report), report


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_library(fault, tmp_path):
    path = _write(fault, tmp_path)
    if not fault.passes:
        with pytest.raises(lp.SeriesError, match=fault.said) as caught:
            lp.read(path, **fault.options)
        assert fault.name in str(caught.value)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lp.LampertiWarning)
            series = lp.read(path, **fault.options)
        assert fault.holds(series), series
        _check_report(fault, lp.check(path, **fault.options).to_dict())


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_command_line(fault, tmp_path, capsys):
    path = _write(fault, tmp_path)
    flags = []
    for name, value in fault.options.items():
        flag = f"--{name.replace('_', '-')}"
        flags += [flag] if value is True else [flag, str(value)]
    code = main(["check", str(path), "--json", *flags])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    if not fault.passes:
        assert code == 1 and captured.out == ""
        (line,) = captured.err.splitlines()
        assert line.startswith("lamperti: ") and fault.name in line
        assert pd.Series([line]).str.contains(fault.said.replace("\\*\\*", "..")).all(), line
    else:
        report = json.loads(captured.out)
        assert code == (0 if report["ok"] else 1)
        _check_report(fault, report)
    assert [p.name for p in tmp_path.iterdir()] == [fault.name]


@pytest.mark.parametrize("kind", ["link", "pipe", "device", "address"])
def test_only_regular_local_files(kind, tmp_path, capsys):
    """Cases 31 and 59."""
    path = {"device": "/dev/null", "address": "https://example.org/a.csv"}.get(kind, str(tmp_path / "a.csv"))
    if kind == "link":
        (tmp_path / "real.csv").write_text(csv(GOOD))
        os.symlink(tmp_path / "real.csv", path)
    elif kind == "pipe":
        os.mkfifo(path)
    said = "local files only" if kind == "address" else "not a regular file"
    with pytest.raises(lp.SeriesError, match=said):
        lp.read(path)
    assert main(["check", path]) == 1
    assert said in capsys.readouterr().err


def test_a_zarr_store_with_a_foreign_codec_is_refused(tmp_path, capsys):
    """Case 29: whatever array it is in, and before anything is decoded."""
    for name, codec in (("x", "bytes"), ("beside", "numcodecs.pickle")):
        (tmp_path / "a.zarr" / name).mkdir(parents=True)
        grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
        about = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float64", "chunk_grid": grid}
        about |= {"chunk_key_encoding": {"name": "default"}, "fill_value": 0.0, "codecs": [{"name": codec}]}
        (tmp_path / "a.zarr" / name / "zarr.json").write_text(json.dumps(about))
    (tmp_path / "a.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(lp.SeriesError, match=r"'beside' uses the codec 'numcodecs.pickle'; only blosc, bytes"):
        lp.read(tmp_path / "a.zarr", columns="x")
    assert main(["check", str(tmp_path / "a.zarr")]) == 1
    assert "numcodecs.pickle" in capsys.readouterr().err


def _store(path):
    array = zarr.create_array(path, shape=(60,), chunks=(20,), dtype="f8", fill_value=0.0, dimension_names=["time"])
    array[:] = 1 + GOOD**2
    return path


@pytest.mark.parametrize("damage", ["missing", "cut", "huge"])
def test_a_zarr_store_without_some_of_its_data_is_refused(damage, tmp_path, capsys):
    """Cases 27 and 28: fill values are never data, and a size is not believed."""
    path = _store(tmp_path / "a.zarr")
    if damage == "missing":  # whole, it is read
        assert lp.read(path)[0].values[:, 0].tolist() == (1 + GOOD**2).tolist()
    chunk, about = path / "c" / "1", path / "zarr.json"
    if damage == "missing":
        chunk.unlink()
    elif damage == "cut":
        chunk.write_bytes(chunk.read_bytes()[:-9])
    else:
        about.write_text(json.dumps(json.loads(about.read_text()) | {"shape": [10**11]}))
    said = {
        "missing": "parts that were never written",
        "cut": "not an intact Zarr file",
        "huge": r"declares the shape \[100000000000\], too much",
    }[damage]
    with pytest.raises(lp.SeriesError, match=said):
        lp.read(path)
    assert main(["check", str(path), "--json"]) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("lamperti: ") and re.search(said, line) and captured.out == ""


def test_ragged_series_start_a_model(tmp_path):
    """Case 17: what is read as ragged is cut into segments whose padding is masked, and a model starts from it."""
    (tmp_path / "a.csv").write_text(RAGGED)
    series = lp.read(tmp_path / "a.csv", id="id")
    tracks = [lp.data.Track(s.values, s.mask, s.steps) for s in series]
    batch = lp.data.segment(tracks, 20, 3).cover()
    assert batch.mask[:, 3:].sum() == 18 + 27 and batch.mask.shape[1] == 23
    lp.build(series, lp.ModelConfig(latent_dim=2, n_inducing=4, window=4, lag=1, n_components=3))


def test_channels_are_matched_by_name_at_a_forecast(tmp_path):
    """Case 23: a column more, or another order, changes nothing; through the library it is matched or refused."""
    import fitted
    from lamperti.cli._run import write_run

    (tmp_path / "run").mkdir()
    write_run(fitted.result(), tmp_path / "run")
    one = fitted.data().series[0]
    y, more = one.values[:, 0], np.cos(one.times)
    pd.DataFrame({"time": one.times, "y": y}).to_csv(tmp_path / "plain.csv", index=False)
    pd.DataFrame({"more": more, "y": y, "time": one.times}).to_csv(tmp_path / "more.csv", index=False)
    for name in ("plain", "more"):
        data, out = str(tmp_path / f"{name}.csv"), str(tmp_path / f"{name}.out.csv")
        assert main(["forecast", str(tmp_path / "run"), data, "--horizon", "5", "--samples", "40", "--out", out]) == 0
    assert (tmp_path / "plain.out.csv").read_text() == (tmp_path / "more.out.csv").read_text()
    (both,) = lp.read(tmp_path / "more.csv")
    with pytest.raises(lp.SeriesError, match=r"trained on 1 channels \(y\).* Leave out more"):
        lp.forecast(fitted.result(), both, horizon=5)
    chosen = lp.forecast(fitted.result(), both.select("y"), horizon=5, n_samples=40)
    table = pd.read_csv(tmp_path / "more.out.csv")
    np.testing.assert_allclose(table["y_mean"], chosen.mean[:, 0], rtol=1e-12)


def test_exports_keep_the_ids_of_the_data(tmp_path):
    import fitted
    from lamperti.cli._run import write_run

    (tmp_path / "run").mkdir()
    write_run(fitted.result(), tmp_path / "run")
    named = zip(["NA", "K"], fitted.data().series[:2], strict=True)
    parts = [pd.DataFrame({"who": who, "time": s.times, "y": s.values[:, 0]}) for who, s in named]
    pd.concat(parts).to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / "out.csv"
    assert main(["embed", str(tmp_path / "run"), str(tmp_path / "a.csv"), "--id", "who", "--out", str(out)]) == 0
    table = pd.read_csv(out, keep_default_na=False)
    assert table["series"].unique().tolist() == ["NA", "K"]
    parts[0].to_csv(tmp_path / "a.csv", index=False)
    assert main(["embed", str(tmp_path / "run"), str(tmp_path / "a.csv"), "--id", "who", "--out", str(out)]) == 0
    assert pd.read_csv(out, keep_default_na=False)["series"].unique().tolist() == ["NA"]


@pytest.fixture
def remembers(tmp_path, monkeypatch):
    """How a file is read for a run that remembers some options."""
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setattr(_remembered, "CONFIG", "config.toml")

    def recording(options, name, *channels, **given):
        monkeypatch.setattr(_remembered, "read_config", lambda run: {"origin": {"path": "a.csv", "options": options}})
        return _remembered.recording(tmp_path, tmp_path / name, Source(**given), channels or None)

    return recording


def test_options_of_a_run_are_used_on_another_file_as_far_as_they_mean_something(tmp_path, remembers):
    pd.DataFrame({"time": [0.0, 1.0], "y": [1.0, 2.0]}).to_parquet(tmp_path / "b.parquet")
    options = {"separator": ";", "decimal": ",", "units": {"y": "mV", "flat": "m"}, "time": "time"}
    (series,) = remembers(options, "b.parquet", "y").read()
    assert series.units == ("mV",) and series.values[:, 0].tolist() == [1.0, 2.0]


def test_an_option_given_to_a_run_leaves_the_other_remembered_ones(tmp_path, remembers):
    (tmp_path / "b.csv").write_text("date;y;z\n2024-03-01;1;5\n2024-03-02;2;7\n")
    options = {"separator": ";", "time": "date", "timezone": "Europe/Madrid", "units": {"y": "mV"}, "sort": True}
    (series,) = remembers(options, "b.csv", "y", "z", units=["z=m"]).read()
    assert series.time_unit == DATES and series.dt == 86400 and series.units == ("mV", "m")
    (series,) = remembers(options, "b.csv", "y", dt=2.0).read()
    assert series.times.tolist() == [0.0, 2.0] and series.units == ("mV",)
    assert "units" not in remembers(options, "b.csv", "y", units=[""]).options
    assert remembers({"dt": 2.0}, "b.csv", time="date").options == {"time": "date"}
    assert remembers({"sort": True}, "b.csv", duplicates="mean").options == {"sort": True, "duplicates": "mean"}


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, capsys, monkeypatch):
    """Case 32."""
    path = tmp_path / "a.csv"
    path.write_text(csv(GOOD))
    from lamperti.data.formats import text

    content = text._content

    def meanwhile(file, most):
        found = content(file, most)
        with path.open("a") as more:
            more.write("60,1\n")
        return found

    monkeypatch.setattr(text, "_content", meanwhile)
    assert main(["check", str(path)]) == 1
    assert "changed while it was read" in capsys.readouterr().err


HOSTILE = "\x1b[2Jflow[bold]$\\frac{1}{0}$\u202e</script>"


def test_names_cannot_command_the_terminal_or_the_figure(tmp_path, capsys, monkeypatch):
    """Case 57: markup, escape sequences and formulas in names of columns and files are shown, not obeyed."""
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "a\x1b[31m[red].csv"
    path.write_text(csv(GOOD, name=HOSTILE))
    assert main(["check", str(path), "--png", str(tmp_path / "a.png")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out
    assert "[2Jflow[bold]$\\frac{1}{0}$</script>" in out and "a\\x1b[31m[red].csv" in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert main(["check", str(path), "--columns", "\x1b[2J"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_no_error_holds_what_commands_a_terminal():
    """Case 73: in any error or warning, and so in a notebook."""
    kinds = [kind for kind in vars(lp).values() if isinstance(kind, type) and issubclass(kind, (Exception, Warning))]
    assert {lp.SeriesError, lp.LampertiWarning, lp.TrainingError, lp.DependencyError} <= set(kinds)
    for kind in kinds:
        assert str(kind("a\x1b[2J\u202eb\r  two\nlines")) == "a\\x1b[2J\\u202eb\\x0d  two\nlines"
    frame = pd.DataFrame({HOSTILE: [1.0, 2.0]})
    with pytest.raises(lp.SeriesError, match="no column 'x'") as caught:
        lp.read(frame, columns="x")
    assert "\x1b" not in str(caught.value) and "\u202e" not in str(caught.value)


def test_ten_thousand_columns_are_checked_in_seconds(tmp_path):
    """Case 72."""
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=(50, 10_000)), axis=0)
    values[:, 7_000] = 3.0
    pd.DataFrame(values, columns=[f"c{i}" for i in range(10_000)]).to_csv(tmp_path / "a.csv", index=False)
    start = time.process_time()
    report = lp.check(tmp_path / "a.csv")
    assert time.process_time() - start < 5
    assert len(report.channels) == 10_000 and report.suggestion is not None
    assert [p.where for p in report.problems if p.code == "constant"] == ["c7000"]
    assert any("of 9999 channels, 100 were looked at closely" in p.message for p in report.problems)


@pytest.mark.parametrize("name", ["=cmd()", "+1+1", "-x", "@sum", "＝x", " =x"])
def test_exported_text_is_no_formula_and_reads_back_under_its_name(name, tmp_path):
    """Case 58."""
    from lamperti.data.writing import write_csv

    write_csv(tmp_path / "a.csv", {name: [-1.5, 2.0], "note": ["-3.5", name]})
    header, first, second = (tmp_path / "a.csv").read_text().splitlines()
    assert header == f"'{name},note" and first == "-1.5,-3.5" and second == f"2.0,'{name}"
    assert lp.read(tmp_path / "a.csv", columns=name)[0].values[0, 0] == -1.5


@pytest.mark.parametrize("name", ["=cmd()", "@sum", "-x"])
def test_no_table_of_the_command_line_holds_a_formula(name, tmp_path):
    """Case 58: every comma-separated file that a command writes."""
    import dataclasses

    import fitted
    from lamperti.cli._run import write_run
    from lamperti.data.writing import FORMULA_STARTS, write_csv

    write_run(dataclasses.replace(fitted.result(), names=(name,)), tmp_path)
    one = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": one.times, name: one.values[:, 0]})
    run, data = str(tmp_path), str(tmp_path / "data.csv")
    out = {kind: str(tmp_path / f"{kind}.csv") for kind in ("forecast", "simulate", "embed")}
    assert main(["forecast", run, data, "--horizon", "5", "--samples", "40", "--out", out["forecast"]]) == 0
    assert main(["simulate", run, "--steps", "20", "--paths", "4", "--out", out["simulate"]]) == 0
    assert main(["embed", run, data, "--out", out["embed"]]) == 0
    for path in tmp_path.glob("*.csv"):
        header, first = path.read_text().splitlines()[:2]
        assert not any(cell.startswith(FORMULA_STARTS) for cell in header.split(","))
        assert all(np.isfinite(float(cell)) for cell in first.split(","))
    assert f"'{name}" in (tmp_path / "simulate.csv").read_text().splitlines()[0]
