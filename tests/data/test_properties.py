"""What holds for data of any kind, looked for with made-up examples."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.io import netcdf_file

from lamperti._errors import LampertiError, SeriesError
from lamperti._text import visible
from lamperti.data import Scaler, Series, read, segment
from lamperti.data.formats.zarr_metadata import read_metadata
from lamperti.data.windows import whole
from lamperti.data.writing import write_csv

many = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
reals = st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=False)
NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs", "Cf"), exclude_characters=";"),
    min_size=1,
    max_size=8,
)


def arrays(min_rows=2, max_rows=12, max_columns=3, elements=reals):
    shapes = st.tuples(st.integers(min_rows, max_rows), st.integers(1, max_columns))
    return npst.arrays(np.float64, shapes, elements=elements)


@pytest.fixture(scope="module")
def folder():
    with TemporaryDirectory() as name:
        yield Path(name)


@many
@given(values=arrays(), lost=st.randoms(use_true_random=False), data=st.data())
def test_a_series_keeps_what_was_observed_and_hides_the_rest(values, lost, data):
    mask = np.array([[lost.random() < 0.7 for _ in row] for row in values])
    mask[0] = True
    steps = data.draw(npst.arrays(float, len(values), elements=st.floats(1e-3, 1e3)))
    series = Series(np.where(mask, values, np.nan), times=np.cumsum(steps), missing="nan")
    np.testing.assert_array_equal(series.mask, mask)
    np.testing.assert_array_equal(series.values[mask], values[mask])
    assert (series.steps > 0).all() and series.length == len(values)
    cut = data.draw(st.integers(1, len(values) - 1))
    past, future = series.split(cut)
    np.testing.assert_array_equal(np.concatenate([past.values, future.values]), series.values)


@many
@given(values=arrays(max_rows=8))
def test_scaling_and_back_is_the_identity(values):
    try:
        scaler = Scaler.from_series([Series(values)])
    except SeriesError:
        spread = np.ptp(values / 2, axis=0)
        assert (spread == 0).any() or np.abs(values).max() > 1e307 or spread.min() < 1e-305
        return
    back = scaler.unscale_values(scaler.values(values))
    size = np.abs(values).max(axis=0)
    assert (np.abs(back - values) <= 1e-12 * size).all()
    assert np.isfinite(scaler.values(values)).all()


@many
@given(
    lengths=st.lists(st.integers(2, 25), min_size=1, max_size=4),
    length=st.integers(2, 9),
    lead=st.integers(0, 6),
    seed=st.integers(0, 99),
)
def test_segments_cover_every_sample_once_and_link_only_neighbours(lengths, length, lead, seed):
    rng = np.random.default_rng(seed)
    tracks = [(rng.normal(size=(n, 2)), np.ones((n, 2), bool), np.ones(n - 1)) for n in lengths]
    batch = segment(tracks, length, lead).cover()
    seen = batch.y[:, lead:][batch.mask[:, lead:].all(axis=-1)]
    assert len(seen) == sum(lengths)
    np.testing.assert_array_equal(np.sort(seen[:, 0]), np.sort(np.concatenate([y[:, 0] for y, _, _ in tracks])))
    padded = whole(*tracks[0], lead, 8)
    assert padded.y.shape[1] == lead + -(-lengths[0] // 8) * 8
    assert padded.link.sum() == lengths[0] - 1


@many
@given(values=arrays(), data=st.data())
def test_a_table_reads_back_as_it_was_written(folder, values, data):
    names = data.draw(st.lists(NAMES, min_size=values.shape[1], max_size=values.shape[1], unique=True))
    columns = [f"c{name}" for name in names]  # a name, not a number
    write_csv(folder / "a.csv", dict(zip(columns, values.T, strict=True)))
    (series,) = read(folder / "a.csv", columns=columns)
    assert series.names == tuple(columns)
    np.testing.assert_array_equal(series.values, values)


@pytest.mark.filterwarnings("ignore::lamperti._errors.LampertiWarning")
@many
@given(
    st.one_of(
        st.binary(max_size=120),
        st.text("0123456789.,;-+eEnaif\"' \n\t\r:TZ\ufeff=@", max_size=120).map(str.encode),
    )
)
def test_any_text_is_read_or_refused_with_a_documented_error(folder, content):
    (folder / "a.txt").write_bytes(content)
    for options in ({}, {"missing": "nan"}, {"separator": ";", "decimal": ","}):
        try:
            series = read(folder / "a.txt", **options)
        except LampertiError as error:
            assert str(error)
        else:
            assert all(np.isfinite(s.values[s.mask]).all() for s in series)


def _archive() -> bytes:
    content = io.BytesIO()
    np.savez(content, time=np.arange(5.0), x=np.arange(5.0) ** 2)
    return content.getvalue()


ARCHIVE = _archive()


@many
@given(
    places=st.lists(st.tuples(st.integers(0, len(ARCHIVE) - 1), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 40),
)
def test_a_damaged_archive_is_read_or_refused_with_a_documented_error(folder, places, cut):
    content = bytearray(ARCHIVE)
    for place, byte in places:
        content[place] = byte
    (folder / "a.npz").write_bytes(bytes(content[: len(content) - cut]))
    try:
        read(folder / "a.npz", missing="nan")
    except LampertiError as error:
        assert str(error)


shared = settings(many, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
integers_of_a_float = st.integers(-(2**53), 2**53)


@shared
@given(
    reals=npst.arrays(float, st.integers(2, 12), elements=reals),
    data=st.data(),
    cut=st.integers(0, 200),
)
def test_a_parquet_file_reads_back_as_it_was_written_and_is_refused_when_cut(folder, in_this_process, reals, data, cut):
    n = len(reals)
    integers = [*data.draw(st.lists(st.none() | integers_of_a_float, min_size=n - 1, max_size=n - 1)), 7]
    labels = data.draw(st.lists(st.text(max_size=3), min_size=1, max_size=1)) * n
    columns = {"a": reals, "b": pa.array(integers, pa.int64()), "who": labels}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    (series,) = read(folder / "a.parquet", id="who", missing="nan")
    np.testing.assert_array_equal(series.values[:, 0], reals)
    np.testing.assert_array_equal(series.values[:, 1], [np.nan if i is None else i for i in integers])
    assert series.label == labels[0]
    if cut:
        content = (folder / "a.parquet").read_bytes()
        (folder / "a.parquet").write_bytes(content[:-cut])
        with pytest.raises(SeriesError, match="Parquet"):
            read(folder / "a.parquet", id="who")


@shared
@given(
    # Below 9.97e36, which NetCDF puts where nothing was written.
    values=npst.arrays(float, st.tuples(st.integers(2, 9), st.integers(1, 3)), elements=st.floats(-1e36, 1e36)),
    data=st.data(),
    classic=st.booleans(),
    cut=st.integers(0, 200),
)
def test_a_netcdf_file_reads_back_as_it_was_written_and_is_refused_when_cut(
    folder, in_this_process, values, data, classic, cut
):
    times = np.cumsum(data.draw(npst.arrays(float, len(values), elements=st.floats(1e-3, 1e3))))
    path = folder / "a.nc"
    if classic:
        with netcdf_file(path, "w") as file:
            file.createDimension("time", len(values))
            file.createDimension("place", values.shape[1])
            file.createVariable("time", "f8", ("time",))[:] = times
            file.createVariable("v", "f8", ("time", "place"))[:] = values
    else:
        with h5py.File(path, "w") as file:
            file["time"], file["v"] = times, values
            file["time"].make_scale("time")
            file["v"].dims[0].attach_scale(file["time"])
    (series,) = read(path)
    np.testing.assert_array_equal(series.values, values)
    np.testing.assert_array_equal(series.times, times)
    if cut:
        path.write_bytes(path.read_bytes()[:-cut])
        with pytest.raises(SeriesError):
            read(path)


GOOD_ZARR = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0.0,
    "codecs": [{"name": "bytes"}],
    "attributes": {},
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@many
@given(st.dictionaries(st.sampled_from(sorted(GOOD_ZARR)), anything, max_size=3))
def test_any_zarr_metadata_is_understood_or_refused_with_a_documented_error(folder, changes):
    (folder / "zarr.json").write_text(json.dumps(GOOD_ZARR | changes))
    try:
        found = read_metadata(folder, ["zarr.json"])
    except SeriesError as error:
        assert str(error)
    else:
        assert all(array.get("left_out") or array["format"] == 3 for array in found)


@many
@given(st.text())
def test_text_made_visible_holds_no_control_character(text):
    shown = visible(text)
    assert shown.isprintable() or not shown
