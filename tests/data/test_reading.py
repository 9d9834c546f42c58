"""Files: what reads, what is refused and where, and writing whole files only."""

import os

import numpy as np
import pandas as pd
import pytest

from lamperti._errors import SeriesError
from lamperti.data import check
from lamperti.data.files import atomic_write
from lamperti.data.reading import read, read_csv, write_csv


@pytest.fixture
def table(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "data.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_columns_are_channels_and_a_column_named_time_is_time(table):
    (series,) = read_csv(table("time,a,b\n0,1,2\n0.5,3,4\n2,5,6\n"))
    assert series.names == ("a", "b")
    np.testing.assert_array_equal(series.times, [0.0, 0.5, 2.0])
    np.testing.assert_array_equal(series.values[:, 1], [2, 4, 6])


def test_time_is_a_channel_only_when_asked_for(table):
    path = table("t,a\n0,1\n2,3\n")
    assert read_csv(path, columns="a")[0].dt == 2.0
    assert read_csv(path, columns=["t", "a"])[0].dt == 1.0
    assert read_csv(path, columns=["a"], dt=0.1)[0].dt == pytest.approx(0.1)
    with pytest.raises(SeriesError, match="dt was given but the file has a column 't'"):
        read_csv(path, dt=0.1)


@pytest.mark.parametrize("text", ["86\n141\n95\n", "86\r\n141\r\n95\r\n\r\n", "\ufeff86\n141\n95"])
def test_one_column_of_numbers_needs_no_header(table, text):
    (series,) = read_csv(table(text), dt=0.5)
    assert series.names == ("y",) and series.dt == 0.5
    np.testing.assert_array_equal(series.values[:, 0], [86, 141, 95])


def test_a_byte_order_mark_is_no_part_of_the_first_name(table):
    assert read_csv(table("\ufeffa,b\n1,2\n3,4\n"))[0].names == ("a", "b")


def test_an_id_column_splits_series_in_order_of_appearance(table):
    series = read_csv(table("id,t,x\nb,0,1\na,0,2\nb,1,3\na,3,4\nb,2,5\n"), id="id")
    assert [s.length for s in series] == [3, 2]
    np.testing.assert_array_equal(series[0].values[:, 0], [1, 3, 5])
    np.testing.assert_array_equal(series[1].times, [0, 3])


def test_dates_become_seconds_in_utc(table):
    (series,) = read_csv(table("when,x\n1970-01-01T01:00:00+01:00,1\n1970-01-01T00:00:00.5Z,2\n"), time="when")
    np.testing.assert_allclose(series.times, [0.0, 0.5])


def test_blank_cells_and_blank_lines_are_missing_values(table):
    path = table("x\n1\n\n3\n\n")
    with pytest.raises(SeriesError, match=r"data\.csv: .*'x': 1; the first in row 1"):
        read_csv(path)
    (series,) = read_csv(path, missing="nan")
    np.testing.assert_array_equal(series.mask[:, 0], [True, False, True])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "empty"),
        ("a,b\n", {}, "header but no rows"),
        ("a,b\n1,2\n", {}, "at least 2 samples; got 1"),
        ("a,a\n1,2\n3,4\n", {}, "'a' comes twice"),
        ("a,\n1,2\n3,4\n", {}, "channel 1 has the name ''"),
        ("a,b\n1,2\n3,x\n", {}, "column 'b', row 1 holds 'x'"),
        ('a,b\n1,"1,5"\n3,"2,5"\n', {}, "column 'b', row 0 holds '1,5'.*decimal mark"),
        ("a;b\n1,5;2\n3;4\n", {}, "semicolons.*decimal"),
        ("a,b\n1,2\n3,4,5\n", {}, "comma-separated"),
        ("a\nTrue\nFalse\n", {}, "column 'a' holds bool"),
        ("a\n1\ninf\n", {}, "row 1, column 'a' holds inf"),
        ("speed,place\n1,2\n3,4\n", {"columns": ["sped"]}, "no column 'sped'. Did you mean 'speed'.*speed, place"),
        ("a,b\n1,2\n3,4\n", {"time": "zzz"}, "no column 'zzz'. It has: a, b"),
        ("a,b\n1,2\n3,4\n", {"time": "a", "columns": ["a"]}, "as a channel and as time"),
        ("a,b\n1,2\n3,4\n", {"time": "a", "dt": 1.0}, "both time and dt"),
        ("a,b\n1,2\n,4\n", {"time": "a"}, "column 'a', row 1 has no time"),
        ("a,b\nnoon,2\n1,4\n", {"time": "a"}, "column 'a', row 0 holds 'noon'"),
        ("a,b\n2,2\n1,4\n", {"time": "a"}, "times must increase; row 1 has 1 after 2"),
        ("a,b\n2,2\n,4\n", {"id": "a"}, "column 'a', row 1 is empty"),
        ("a,b\nu,2\nu,4\nv,1\n", {"id": "a"}, "a v: a series needs at least 2 samples"),
        ("a\n1\n2\n", {"columns": []}, "no column is left"),
    ],
)
def test_bad_tables_are_refused_by_file_column_and_row(table, text, options, message):
    with pytest.raises(SeriesError, match=rf"data\.csv: .*{message}"):
        read_csv(table(text), **options)


@pytest.mark.parametrize("content", [b"a\n1\n\xff\xfe\n", "a\n1\n2\n".encode("utf-16")])
def test_files_in_another_encoding_are_refused(table, content):
    with pytest.raises(SeriesError, match="not UTF-8"):
        read_csv(table(content))


def test_only_regular_local_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, message in [
        ("https://example.org/data.csv", "local files only"),
        ("file:///data.csv", "local files only"),
        (tmp_path / "absent.csv", "cannot be opened"),
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/null", "not a regular file"),
    ]:
        with pytest.raises(SeriesError, match=message):
            read_csv(path)


def test_numbers_survive_the_round_trip_exactly(tmp_path):
    x = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    write_csv(tmp_path / "out.csv", {"time": np.arange(50), "x": x})
    (series,) = read_csv(tmp_path / "out.csv")
    np.testing.assert_array_equal(series.values[:, 0], x)


def test_text_that_looks_like_a_formula_is_defused_and_negative_numbers_are_not(tmp_path):
    write_csv(tmp_path / "out.csv", {"=name": ["=1+1", "@x", "plain"], "x": [-1.5, 2.0, -3.0]})
    assert (tmp_path / "out.csv").read_text() == "'=name,x\n'=1+1,-1.5\n'@x,2.0\nplain,-3.0\n"


def test_columns_of_unequal_length_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(SeriesError, match="one length"):
        write_csv(tmp_path / "out.csv", {"a": [1, 2], "b": [1]})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.bin"
    atomic_write(path, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["model.bin"]


def test_a_written_file_has_the_permissions_of_any_other(tmp_path):
    atomic_write(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_table_named_tsv_is_written_with_tabs_and_reads_back(tmp_path):
    write_csv(tmp_path / "a.tsv", {"time": [0.0, 1.0], "y": [1.5, 2.5]})
    assert (tmp_path / "a.tsv").read_text() == "time\ty\n0.0\t1.5\n1.0\t2.5\n"
    assert read(tmp_path / "a.tsv")[0].values[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "text, options, line",
    [
        ("time,y\n0,1\n1,x\n", {}, "Row 1 is line 3"),
        ("time,y\n0,1\n1,\n", {}, "Row 1 is line 3"),
        ("time,y\n1,1\n0,2\n\n\n", {}, "Row 1 is line 3"),
        ("0,5\n1,inf\n", {}, "Row 1 is line 2"),
        ("time,y,who\n0,1,a\n1,2,b\n2,x,b\n", {"id": "who"}, "Row 2 is line 4"),
        ("time,y,who\n0,1,a\n1,2,a\n1,2,b\n0,2,b\n", {"id": "who"}, None),
        ('time,y\n0,"\n1"\n1,x\n', {}, None),
    ],
)
def test_a_row_at_fault_is_told_by_its_line_where_that_is_sure(text, options, line, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SeriesError, match=r"\brow \d") as error:
        read(tmp_path / "a.csv", **options)
    assert line in str(error.value) if line else "is line" not in str(error.value)


def _counted(name):
    return "\n".join([f"{name},lynx", *(f"{1821 + k},{k * 7 % 11}" for k in range(30))]) + "\n"


@pytest.mark.parametrize("name", ["year", "YEAR", "Day", "seconds", "index"])
def test_a_column_of_equal_steps_with_a_name_of_times_is_the_time_and_that_is_told(name, tmp_path):
    (tmp_path / "d.csv").write_text(_counted(name))
    (series,) = read(tmp_path / "d.csv")
    assert series.names == ("lynx",)
    np.testing.assert_array_equal(series.times, 1821 + np.arange(30.0))
    assert series.repairs == (
        f"column {name!r} increases in equal steps and was taken for the times; columns= may list it",
    )
    assert [c.name for c in check(tmp_path / "d.csv").channels] == ["lynx"]


def test_a_counting_column_stays_a_channel_where_it_is_asked_for_or_counts_unevenly(tmp_path):
    (tmp_path / "d.csv").write_text(_counted("year"))
    assert read(tmp_path / "d.csv", columns=["year", "lynx"])[0].names == ("year", "lynx")
    assert read(tmp_path / "d.csv", dt=0.5)[0].names == ("year", "lynx")
    (tmp_path / "u.csv").write_text(_counted("year").replace("1825,", "1999,"))
    assert read(tmp_path / "u.csv")[0].names == ("year", "lynx")
    (tmp_path / "o.csv").write_text(_counted("height"))
    assert read(tmp_path / "o.csv")[0].names == ("height", "lynx")


def test_a_column_with_a_usual_name_goes_before_one_that_counts(tmp_path):
    rows = [f"{0.1 * k},{k},{k * 7 % 11}" for k in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["time,index,y", *rows]) + "\n")
    (series,) = read(tmp_path / "d.csv")
    assert series.names == ("index", "y")
    assert series.dt == pytest.approx(0.1)


def test_counting_starts_again_with_each_series(tmp_path):
    rows = [f"{who},{k},{(k * 7 + len(who)) % 11}" for who in ("a", "bb") for k in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["who,day,y", *rows]) + "\n")
    first, second = read(tmp_path / "d.csv", id="who")
    assert first.names == second.names == ("y",)
    np.testing.assert_array_equal(second.times, np.arange(30.0))


def test_a_counting_column_is_found_in_tables_of_which_only_some_channels_are_asked_for(tmp_path):
    frame = pd.DataFrame({"year": 1900 + np.arange(30), "a": np.arange(30) % 7, "b": np.arange(30) % 5})
    frame.to_parquet(tmp_path / "d.parquet", index=False)
    for source in (frame, tmp_path / "d.parquet"):
        (series,) = read(source, columns=["a"])
        assert series.times[0] == 1900.0
