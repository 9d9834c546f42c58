"""Files of every format: what reads, and what is refused before it does harm."""

import gzip
import io
import json
import os
import signal
import struct
import warnings
import zipfile

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
import zarr
from scipy.io import netcdf_file

from lamperti._errors import DependencyError, SeriesError
from lamperti.cli import main
from lamperti.data import read
from lamperti.data.formats import decoding

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(2, 12))
T = np.arange(12) * 0.5
FRAME = pd.DataFrame({"time": T, "x": X, "z": Z})
DAYS = pd.date_range("2024-01-01", periods=12, freq="D")


def _written(path, kind):
    """The same two channels at the same times in a file of some format."""
    if kind == "csv":
        FRAME.to_csv(path := path / "a.csv", index=False)
    elif kind == "tsv":
        FRAME.to_csv(path := path / "a.tsv", index=False, sep="\t")
    elif kind == "csv.gz":
        FRAME.to_csv(path := path / "a.csv.gz", index=False)
    elif kind == "parquet":
        FRAME.to_parquet(path := path / "a.parquet")
    elif kind == "npz":
        np.savez_compressed(path := path / "a.npz", time=T, x=X, z=Z)
    else:
        data = xr.Dataset({"x": ("time", X), "z": ("time", Z)}, coords={"time": T})
        if kind == "netcdf4":
            data.to_netcdf(path := path / "a.nc", engine="h5netcdf")
        elif kind == "netcdf3":
            data.to_netcdf(path := path / "a.nc", engine="scipy")
        else:
            data.to_zarr(path := path / "a.zarr", zarr_format=2 if kind == "zarr2" else 3, consolidated=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "npz", "netcdf4", "netcdf3", "zarr2", "zarr3"])
def test_every_format_gives_the_same_series(tmp_path, kind):
    (series,) = read(_written(tmp_path, kind))
    assert series.names == ("x", "z")
    np.testing.assert_array_equal(series.values, np.stack([X, Z], axis=1))
    np.testing.assert_array_equal(series.times, T)


def test_the_name_of_a_file_does_not_hide_what_it_is(tmp_path):
    path = _written(tmp_path, "parquet")
    (series,) = read(path.rename(tmp_path / "a.csv"))
    np.testing.assert_array_equal(series.times, T)


@pytest.mark.parametrize(
    ("shape", "axes", "n_series", "names"),
    [
        ((7,), None, 1, ("y",)),
        ((3, 7), None, 3, ("y",)),
        ((7, 3), "tp", 1, ("y0", "y1", "y2")),
        ((3, 7, 2), None, 3, ("y0", "y1")),
    ],
)
def test_a_bare_array_has_the_axes_it_would_have_in_memory(tmp_path, shape, axes, n_series, names):
    array = RNG.normal(size=shape)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    series = read(tmp_path / "a.npy", axes=axes)
    assert len(series) == n_series and series[0].names == names
    expected = array if axes else array.reshape(n_series, 7, -1)[0]
    np.testing.assert_array_equal(series[0].values, expected)


def test_a_step_in_an_archive_is_the_step_of_the_series(tmp_path):
    np.savez(tmp_path / "a.npz", position=X, dt=0.25)
    (series,) = read(tmp_path / "a.npz")
    assert series.names == ("position",) and series.dt == 0.25
    np.savez(tmp_path / "a.npz", a=np.zeros((2, 5)), b=np.zeros((3, 4)))
    with pytest.raises(SeriesError, match=r"several arrays \(a \[2, 5\], b \[3, 4\]\).*array="):
        read(tmp_path / "a.npz")
    assert len(read(tmp_path / "a.npz", array="b")) == 3


def test_parquet_keeps_dates_subjects_and_nulls(tmp_path):
    table = pl.DataFrame(
        {
            "when": pl.Series(list(DAYS[:4])).dt.replace_time_zone("America/Lima"),
            "who": ["07", "7", "07", "7"],
            "x": [1, None, 3, 4],
        }
    )
    table.write_parquet(tmp_path / "a.parquet")
    first, second = read(tmp_path / "a.parquet", time="when", id="who", missing="nan", columns="x")
    assert (first.label, second.label) == ("07", "7")
    assert first.times[0] == pd.Timestamp("2024-01-01T05:00Z").timestamp()
    np.testing.assert_array_equal(second.mask[:, 0], [False, True])


def test_netcdf_is_unpacked_dated_masked_and_split_by_station(tmp_path):
    packed = np.array([[10, 20, -99, 40], [1, 2, 3, 4]], dtype="i2")
    data = xr.Dataset(
        {
            "level": (
                ("station", "time"),
                packed,
                {"units": "m", "scale_factor": 0.1, "add_offset": 5.0, "_FillValue": -99},
            )
        },
        coords={"station": [3, 8], "time": ("time", [0, 1, 2, 4], {"units": "hours since 2024-01-01 12:00"})},
    )
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(SeriesError, match=r"series 3: .*NaN"):
        read(tmp_path / "a.nc", id="station")
    first, second = read(tmp_path / "a.nc", id="station", missing="nan")
    assert first.units == ("m",) and first.label == "3"
    np.testing.assert_allclose(first.values[:, 0], [6, 7, np.nan, 9])
    np.testing.assert_allclose(second.times - second.times[0], [0, 3600, 7200, 14400])
    assert first.times[0] == pd.Timestamp("2024-01-01T12:00Z").timestamp()


def test_a_plain_hdf5_file_of_vectors_is_a_table(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["flow"] = X
        file["pressure"] = Z
    (series,) = read(tmp_path / "a.h5", dt=0.1)
    assert series.names == ("flow", "pressure") and series.dt == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["netcdf4", "zarr3"])
def test_only_the_variables_that_are_needed_are_decoded(tmp_path, kind):
    path = _written(tmp_path, kind)
    (series,) = read(path, columns="z", max_bytes=2 * Z.nbytes)
    assert series.names == ("z",) and series.dt == 0.5
    with pytest.raises(SeriesError, match="too much to read"):
        read(path, max_bytes=2 * Z.nbytes)


# What must be refused.


def _npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def _huge_zarr(path):
    zarr.create_array(path, shape=(10**11,), chunks=(10**6,), dtype="f8", dimension_names=["time"])


def _sparse_zarr(path, fill):
    array = zarr.create_array(path, shape=(12,), chunks=(4,), dtype="f8", fill_value=fill, dimension_names=["time"])
    array[:] = 1 + np.arange(12.0)
    (path / "c" / "1").unlink()


def _zarr_with(path, **changes):
    zarr.create_array(path, shape=(12,), chunks=(12,), dtype="f8", dimension_names=["time"])[:] = X
    metadata = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps(metadata | changes))


def test_an_array_saved_under_python_2_is_read_without_a_word(tmp_path):
    values = np.arange(12.0)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (12L,), }"
    (tmp_path / "a.npy").write_bytes(_npy(header + b" " * 20 + b"\n", values.tobytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (series,) = read(tmp_path / "a.npy")
    np.testing.assert_array_equal(series.values[:, 0], values)


def _objects_npy(path):
    np.save(path, np.array([1.0, None], dtype=object), allow_pickle=True)


BAD = {
    "gzip bomb": (
        lambda p: (p / "a.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 20_000_000)),
        "unpacks to more than 200 times",
    ),
    "cut gzip": (lambda p: (p / "a.csv.gz").write_bytes(gzip.compress(b"x\n1\n2\n" * 99)[:-9]), "ends too early"),
    "damaged gzip": (lambda p: (p / "a.csv.gz").write_bytes(b"\x1f\x8b\x08" + b"\0" * 30), "damaged"),
    "huge declared NPY": (
        lambda p: (p / "a.npy").write_bytes(_npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**13,), }")),
        "not an intact NPY",
    ),
    "huge NPY": (
        lambda p: (p / "a.npy").write_bytes(
            _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }\n")
        ),
        "declares 79999999999992 bytes",
    ),
    "cut NPY": (
        lambda p: (p / "a.npy").write_bytes(
            _npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }\n", b"\0" * 64)
        ),
        "declares 72 bytes of data, but the file has 64",
    ),
    "objects in NPY": (lambda p: _objects_npy(p / "a.npy"), "dtype object"),
    "pickle renamed": (lambda p: (p / "a.npy").write_bytes(b"\x80\x04\x95\x0b\0\0\0\0\0\0\0"), "not an intact NPY"),
    "pickle": (lambda p: (p / "a.pkl").write_bytes(b"\x80\x04."), "could run code"),
    "workbook": (lambda p: (p / "a.xlsx").write_bytes(b"PK\x03\x04"), "Excel"),
    "cut NPZ": (
        lambda p: (p / "a.npz").write_bytes(b"PK\x03\x04 and nothing more"),
        "not an intact NPZ",
    ),
    "text in NPZ": (lambda p: zipfile.ZipFile(p / "a.npz", "w").writestr("a.txt", "1"), "not a plain array"),
    "cut Parquet": (
        lambda p: (p / "a.parquet").write_bytes(_parquet()[:-20]),
        "not an intact Parquet",
    ),
    "no Parquet": (lambda p: (p / "a.parquet").write_bytes(b"PA"), "does not begin"),
    "cut NetCDF": (lambda p: (p / "a.nc").write_bytes(_netcdf()[:-2000]), "not an intact NetCDF"),
    "crafted HDF5": (
        lambda p: (p / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + RNG.bytes(4000)),
        "not an intact NetCDF",
    ),
    "HDF5 that points elsewhere": (lambda p: _pointing(p / "a.h5"), "'x' is a link to another file"),
    "huge HDF5": (
        lambda p: (
            h5py.File(p / "a.h5", "w").create_dataset("x", shape=(10**12,), chunks=(10**5,), dtype="f4").file.close()
        ),
        r"'x' declares the shape \[1000000000000\]",
    ),
    "unwritten HDF5": (
        lambda p: h5py.File(p / "a.h5", "w").create_dataset("x", shape=(100,), chunks=(10,), dtype="f4").file.close(),
        "never written",
    ),
    "huge Zarr": (lambda p: _huge_zarr(p / "a.zarr"), "declares the shape"),
    "missing Zarr chunk": (lambda p: _sparse_zarr(p / "a.zarr", 0.0), "'y' has parts that were never written"),
    "Zarr codec": (
        lambda p: _zarr_with(p / "a.zarr", codecs=[{"name": "numcodecs.pickle"}]),
        "codec 'numcodecs.pickle'; only blosc",
    ),
    "Zarr text": (lambda p: _zarr_with(p / "a.zarr", data_type="string"), "Python objects or text"),
    "Zarr shape": (lambda p: _zarr_with(p / "a.zarr", shape=[-1]), "which cannot be"),
    "Zarr link": (
        lambda p: (_zarr_with(p / "a.zarr"), os.symlink("/etc/hostname", p / "a.zarr" / "c" / "9")),
        "link or a special file",
    ),
    "folder": (lambda p: (p / "a.d").mkdir(), "nor a Zarr store"),
}


def _pointing(path):
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "/x")


def _parquet() -> bytes:
    content = io.BytesIO()
    FRAME.to_parquet(content)
    return content.getvalue()


def _netcdf() -> bytes:
    return bytes(xr.Dataset({"x": ("time", X)}, coords={"time": T}).to_netcdf(engine="h5netcdf"))


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_damaged_or_meant_to_harm_is_refused(tmp_path, case):
    write, message = BAD[case]
    write(tmp_path)
    (path,) = tmp_path.iterdir()
    with pytest.raises(SeriesError, match=rf"{path.name}: .*{message}|{message}"):
        read(path)


def test_a_missing_chunk_whose_fill_is_nan_counts_as_missing(tmp_path):
    _sparse_zarr(tmp_path / "a.zarr", np.nan)
    with pytest.raises(SeriesError, match="NaN"):
        read(tmp_path / "a.zarr")
    (series,) = read(tmp_path / "a.zarr", missing="nan")
    assert series.mask[:, 0].tolist() == [True] * 4 + [False] * 4 + [True] * 4


def _store(path, version=3, **arrays):
    group = zarr.open_group(path, mode="w", zarr_format=version)
    for name, values in arrays.items():
        named = {"dimension_names": ["time"]} if version == 3 else {}
        array = group.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype, **named)
        array[:] = values
        if version == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = ["time"]
    return path


@pytest.mark.filterwarnings("ignore")  # zarr says that dates are not in its standard yet
@pytest.mark.parametrize("version", [2, 3])
def test_dates_of_a_zarr_store_are_its_times(tmp_path, version):
    days = np.array("2024-03-01", "M8[s]") + np.array([0, 60, 180, 600], "m8[s]")
    (series,) = read(_store(tmp_path / "a.zarr", version, x=X[:4], time=days))
    assert series.steps.tolist() == [60, 120, 420] and series.names == ("x",)
    assert series.times[0] == pd.Timestamp("2024-03-01T00:00Z").timestamp()


@pytest.mark.filterwarnings("ignore")
def test_a_complex_array_of_a_zarr_store_is_refused_unless_others_are_chosen(tmp_path):
    path = _store(tmp_path / "a.zarr", x=X, z=X + 1j)
    with pytest.raises(SeriesError, match="column 'z' must be real numbers, not complex numbers"):
        read(path)
    assert read(path, columns="x")[0].names == ("x",)


def _texts(path, kind, **names):
    """A file with numbers x and text under other names."""
    if kind == "zarr":
        texts = {name: np.array(cells, dtype="U10") for name, cells in names.items()}
        return _store(path / "a.zarr", x=X, **texts)
    with h5py.File(path / "a.h5", "w") as file:
        file["x"] = X
        for name, cells in names.items():
            file[name] = cells
    return path / "a.h5"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["zarr", "hdf5"])
def test_times_that_cannot_be_read_are_never_left_out(tmp_path, kind):
    path = _texts(tmp_path, kind, time=[str(day.date()) for day in DAYS])
    for options in ({}, {"columns": "x"}, {"dt": 1.0}):
        with pytest.raises(SeriesError, match=r"'time' should be the times but it holds .*, not numbers"):
            read(path, **options)
    assert read(path, columns="x", dt=2.0)[0].dt == 2.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["zarr", "hdf5"])
def test_text_beside_the_data_is_left_out_aloud_and_refused_when_asked_for(tmp_path, kind):
    path = _texts(tmp_path, kind, note=["a", "b"] * 6)
    (series,) = read(path)
    assert series.names == ("x",) and "'note' was left out: it holds" in series.repairs[0]
    assert read(path, columns="x")[0].repairs == ()
    for options in ({"columns": ["x", "note"]}, {"id": "note"}):
        with pytest.raises(SeriesError, match="'note' was asked for but it holds"):
            read(path, **options)


def test_a_column_of_a_plain_hdf5_file_may_be_the_id(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["who"] = X, np.repeat([7, 8], 6)
    for options in ({}, {"columns": "x"}):
        first, second = read(tmp_path / "a.h5", id="who", **options)
        assert (first.label, second.label, second.names) == ("7", "8", ("x",))
    with pytest.raises(SeriesError, match=r"there is no column 'whom'. Did you mean 'who'"):
        read(tmp_path / "a.h5", id="whom")


def test_values_that_netcdf_puts_where_nothing_was_written_are_no_data(tmp_path):
    with netcdf_file(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", 4)
        file.createVariable("x", "f8", ("time",))[:] = [1.0, 9.969209968386869e36, 2.0, 3.0]
    with pytest.raises(SeriesError, match="puts where nothing was written, 1 times"):
        read(tmp_path / "a.nc")


def test_a_decoder_that_dies_takes_nobody_along(tmp_path, monkeypatch, capsys):
    script = tmp_path / "dies.py"
    script.write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGSEGV)})\n")
    monkeypatch.setattr(decoding, "_SCRIPT", script)
    path = _written(tmp_path, "netcdf4")
    with pytest.raises(SeriesError, match=r"a\.nc: the decoder .* was ended by signal 11"):
        read(path)
    assert main(["check", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lamperti: ") and "was ended by signal 11" in line


def test_a_decoder_that_hangs_is_ended(tmp_path, monkeypatch):
    script = tmp_path / "hangs.py"
    script.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(decoding, "_SCRIPT", script)
    monkeypatch.setattr(decoding, "_PATIENCE", 0.2)
    with pytest.raises(SeriesError, match="did not end"):
        read(_written(tmp_path, "parquet"))


def test_a_library_that_is_not_there_is_named_with_the_way_to_install_it(tmp_path, monkeypatch):
    path = _written(tmp_path, "parquet")
    monkeypatch.setattr(decoding.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match=r"need pyarrow. Install it: pip install 'lamperti\[parquet\]'"):
        read(path)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = _written(tmp_path, "parquet")

    def meanwhile(*arguments, **options):
        with path.open("ab") as file:
            file.write(b"more")
        return []

    monkeypatch.setattr("lamperti.data.formats.columnar.decode", meanwhile)
    with pytest.raises(SeriesError, match="changed while it was read"):
        read(path)


def test_links_are_not_followed(tmp_path):
    path = _written(tmp_path, "csv")
    (tmp_path / "link.csv").symlink_to(path)
    with pytest.raises(SeriesError, match=r"link\.csv is a link, not a regular file. Give the file itself: .*a\.csv"):
        read(tmp_path / "link.csv")
