"""Tables of any library: read as the tables they are."""

import datetime as dt

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lamperti as lp
from lamperti._errors import ConfigError, LampertiWarning, SeriesError
from lamperti.data import as_series_list, read

pytestmark = pytest.mark.usefixtures("in_this_process")

N = 300
TIMES, X = np.arange(N) * 0.5, np.sin(np.arange(N) / 9)
TABLE = pa.table({"time": TIMES, "x": X})

KINDS = {
    "pyarrow": lambda table: table,
    "record batch": lambda table: pa.record_batch([c.combine_chunks() for c in table.columns], schema=table.schema),
    "batches": lambda table: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(table),
    "narwhals": lambda table: nw.from_native(table),
    "narwhals lazy": lambda table: nw.from_native(pl.from_arrow(table)).lazy(),
    "narwhals of pandas": lambda table: nw.from_native(table.to_pandas()),
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}
ANY = pytest.mark.parametrize("kind", KINDS)


@ANY
def test_a_table_of_any_library_is_one_series_of_its_rows(kind):
    (series,) = read(KINDS[kind](TABLE))
    assert series.names == ("x",) and series.length == N
    np.testing.assert_array_equal(series.times, TIMES)
    np.testing.assert_array_equal(series.values[:, 0], X)
    (again,) = as_series_list(KINDS[kind](TABLE))
    np.testing.assert_array_equal(again.values, series.values)
    assert lp.check(KINDS[kind](TABLE)).series[0].length == N
    first, second = read([KINDS[kind](TABLE), KINDS[kind](TABLE)])
    assert first.names == second.names == ("x",) and second.length == N


@ANY
def test_columns_of_every_kind_are_what_they_are(kind):
    when = [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in range(3)]
    table = pa.table(
        {
            "when": pa.array(when, pa.timestamp("us", tz="America/Lima")),
            "day": [stamp.date() + dt.timedelta(days=i) for i, stamp in enumerate(when)],
            "who": ["a", "a", "a"],
            "whole": pa.array([1, None, 3]),
            "real": pa.array([1.5, None, 3.5]),
            "money": pa.array([1, 2, 3], pa.decimal128(10, 2)),
            "pump": [True, False, True],
            "valve": pa.array(["open", "shut", "open"]).dictionary_encode(),
            "huge": pa.array([2**53 + 1, None, 1]),
        }
    )
    table = KINDS[kind](table)
    options = {"time": "when", "id": "who", "columns": ["whole", "real", "money", "pump", "valve"]}
    if kind in ("batches", "duckdb"):  # read once only; has no categories
        options["columns"] = options["columns"][:4]
    (series,) = read(table, missing="nan", codes=options["columns"][3:], **options)
    assert series.times[0] == dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC).timestamp() and series.dt == 3600
    assert series.label == "a" and series.mask.sum(axis=0).tolist()[:3] == [2, 2, 3]
    np.testing.assert_array_equal(series.values[:, 2:4], [[1, 1], [2, 0], [3, 1]])
    if kind == "batches":
        return
    assert read(table, time="day", columns=["real"], missing="nan")[0].dt == 86400
    with pytest.raises(SeriesError, match=r"'pump' holds (booleans|categories)"):
        read(table, columns="pump", dt=1.0)
    with pytest.raises(SeriesError, match="'valve' holds categories" if "valve" in options["columns"] else "valve"):
        read(table, columns="valve", dt=1.0)
    with pytest.raises(SeriesError, match="column 'who', row 0 holds 'a'"):
        read(table, columns="who", dt=1.0)
    if kind not in ("pandas", "narwhals of pandas"):  # which made floats of integers with a hole before
        with pytest.warns(LampertiWarning, match="largest magnitude 9007199254740993"):
            read(table, columns="huge", missing="nan", dt=1.0)


@ANY
def test_mistakes_are_told_alike_for_every_library(kind):
    with pytest.raises(SeriesError, match=r"no column 'y'\. It has: time, x"):
        read(KINDS[kind](TABLE), columns="y")
    with pytest.raises(ConfigError, match="separator= is for text files, and this is a table in memory"):
        read(KINDS[kind](TABLE), separator=";")
    with pytest.raises(SeriesError, match="the table is empty: 0 rows of 2 columns"):
        read(KINDS[kind](TABLE.slice(0, 0)))


@pytest.mark.parametrize("column", [pa.chunked_array([X[:9], X[9:]]), pa.array(X), pl.Series(X), pd.Series(X)])
def test_a_column_by_itself_is_a_series(column):
    (series,) = read(column, dt=0.5)
    assert series.names == ("y",) and series.dt == 0.5
    np.testing.assert_array_equal(series.values[:, 0], X)
    np.testing.assert_array_equal(as_series_list(column)[0].values[:, 0], X)


def test_only_what_is_needed_of_a_lazy_table_is_computed():
    never = pl.from_arrow(TABLE).lazy().with_columns(bad=pl.concat_str("x", pl.lit("?")).cast(pl.Float64))
    assert read(never, columns="x")[0].dt == 0.5
    with pytest.raises(SeriesError, match="the table could not be computed"):
        read(never)


def test_integers_beyond_those_of_numpy_are_read_aloud():
    with pytest.warns(LampertiWarning, match=f"largest magnitude {2**100}"):
        (series,) = read(pl.DataFrame({"x": pl.Series([1, 2**100, 3], dtype=pl.Int128)}))
    assert series.values[:, 0].tolist() == [1, 2.0**100, 3]


@pytest.mark.parametrize("metadata", [b"{nonsense", b"[1]", b"3", b'{"index_columns": 3}', b'{"index_columns": [{}]}'])
def test_metadata_that_pandas_never_wrote_is_no_index(metadata):
    (series,) = read(TABLE.replace_schema_metadata({b"pandas": metadata}))
    assert series.names == ("x",) and series.dt == 0.5


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(SeriesError, match="'a' comes twice"):
        read(pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]))


def test_what_is_no_table_is_refused_by_its_name():
    for thing in (pl.col("a"), pa.int64()):
        with pytest.raises(SeriesError, match=r"is not a table of data"):
            read(thing)


# Indices of pandas, and what becomes of them in Arrow

DAYS = pd.date_range("2024-01-01", periods=4)


def panel(levels, names):
    index = pd.MultiIndex.from_arrays(levels, names=names)
    return pd.DataFrame({"x": np.arange(len(index)) + 0.5}, index=index)


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        ([["a"] * 4 + ["b"] * 4, [*range(4), *range(4)]], ["who", "time"]),
        ([["a"] * 4 + ["b"] * 4, [*range(4), *range(4)]], [None, None]),
        ([[7] * 4 + [8] * 4, [0.0, 1.0, 2.0, 3.0] * 2], ["who", "s"]),
        ([[0.0, 1.0, 2.0, 3.0] * 2, [7] * 4 + [8] * 4], ["time", "who"]),
        ([[*DAYS, *DAYS], ["a"] * 4 + ["b"] * 4], ["day", "who"]),
        ([["a"] * 4 + ["b"] * 4, [*DAYS, *DAYS]], ["who", "day"]),
        ([["a"] * 4 + ["b"] * 4, [*DAYS, *DAYS]], ["who", "day"]),
        ([[1] * 4 + [2] * 4, [*DAYS.tz_localize("Europe/Madrid"), *DAYS.tz_localize("Europe/Madrid")]], ["who", "day"]),
    ],
)
def test_an_index_of_series_and_times_splits_the_rows(levels, names):
    first, second = read(panel(levels, names))
    assert first.length == second.length == 4 and first.names == ("x",)
    assert [first.label, second.label] in (["a", "b"], ["7", "8"], ["1", "2"])
    assert second.values[:, 0].tolist() == [4.5, 5.5, 6.5, 7.5]
    assert first.steps.tolist() == [86400.0 if "day" in names else 1.0] * 3
    assert len(as_series_list(panel(levels, names)["x"])) == 2


def test_levels_of_an_index_can_be_named_as_time_and_id():
    frame = panel([[1, 2] * 4, [0, 0, 1, 1, 2, 2, 3, 3]], ["rat", "trial"])
    first, second = read(frame)
    assert (first.label, second.label, first.steps.tolist()) == ("1", "2", [1, 1, 1])
    first, second, *_ = read(frame, id="trial", time="rat")
    assert first.label == "0" and first.times.tolist() == [1, 2]
    three = panel([["u"] * 4 + ["v"] * 4, [1, 1, 2, 2] * 2, [0, 1] * 4], ["ward", "bed", "time"])
    assert [s.label for s in read(three)] == ["u/1", "u/2", "v/1", "v/2"]


def test_levels_of_an_index_that_hold_no_times_are_refused():
    frame = panel([["a", "a", "b", "b"], ["u", "v", "u", "v"]], ["who", "what"])
    with pytest.raises(SeriesError, match=r"index has levels who, what, and none holds times.*reset_index"):
        read(frame)
    with pytest.raises(SeriesError, match=r"'x' is no level of the index \(who, what\).*reset_index"):
        read(frame, time="x")
    with pytest.raises(SeriesError, match="column 'who', row 1 is empty, so its series is unknown"):
        read(panel([["a", None], [0, 1]], ["who", "time"]))
    with pytest.raises(SeriesError, match=r"index has 2 levels.*lamperti\.read"):
        lp.Series(frame)


@pytest.mark.parametrize("name", [None, "when"])
def test_an_index_survives_arrow(name, tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.5, 0.5, 4.5]}, index=pd.Index([0.0, 0.5, 1.0, 3.0], name=name))
    frame.to_parquet(tmp_path / "a.parquet")
    # The last as Modin and Dask have theirs.
    for source in (frame, pa.Table.from_pandas(frame), tmp_path / "a.parquet", nw.from_native(frame)):
        for options in ({}, {"columns": "x"}):
            (series,) = read(source, **options)
            assert series.names == ("x",) and series.times.tolist() == [0.0, 0.5, 1.0, 3.0]
