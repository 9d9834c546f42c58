"""Which columns are taken for times, what is told because it may be the times, and where tables start."""

import numpy as np
import pytest

import lamperti as lp
from lamperti.data.checking.concerns import concerns
from lamperti.data.options import ReadOptions
from lamperti.data.rows import read_clock
from lamperti.data.table import Table
from lamperti.data.time_names import is_time_name, unit_in_name

N = 40
STEPS = np.cumsum(np.random.default_rng(3).uniform(0.5, 1.5, N)).round(4)
VALUES = np.random.default_rng(4).normal(size=N).round(4)


def written(tmp_path, header, before="", columns=(STEPS, VALUES)):
    path = tmp_path / "data.csv"
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text(before + "\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    "name, unit",
    [
        ("Time (s)", "s"),
        ("Time [ms]", "ms"),
        ("time_ms", "ms"),
        ("t (s)", "s"),
        ("t_s", "s"),
        ("TIME (sec)", "s"),
        ("Elapsed time", ""),
        ("elapsed_time (min)", "min"),
        ("Timestamp (UTC)", ""),
        ("Time in hours", "h"),
        ("time, ka", "ka"),
    ],
)
def test_a_column_of_times_is_known_by_its_name_whatever_its_unit(tmp_path, name, unit):
    (found,) = lp.read(written(tmp_path, f'"{name}",ECG (mV)'))
    np.testing.assert_allclose(found.times, STEPS)
    assert found.names == ("ECG (mV)",) and found.time_unit == unit


@pytest.mark.parametrize("name", ["T (K)", "t (degC)", "time constant (s)", "dates of birth", "lifetime", "runtime_ms"])
def test_other_names_are_no_times(name):
    assert not is_time_name(name)


def test_the_unit_that_is_asked_for_wins(tmp_path):
    (found,) = lp.read(written(tmp_path, "Time (s),v"), time_unit="ka")
    assert found.time_unit == "ka" and unit_in_name("Age [kyr BP]") == "ka"


def test_two_columns_that_may_be_the_times_are_refused(tmp_path):
    with pytest.raises(lp.SeriesError, match="may both be the times"):
        lp.read(written(tmp_path, "time,Time (s),v", columns=(STEPS, STEPS, VALUES)))


def test_a_first_column_that_only_increases_is_told_to_be_the_time(tmp_path):
    """In unequal steps and with a name that nobody could foresee."""
    path = written(tmp_path, "Depth (m),d18O")
    (told,) = [p for p in concerns(lp.read(path)) if p.code == "time column"]
    assert told.where == "Depth (m)" and "time='Depth (m)'" in told.message
    (found,) = lp.read(path, time="Depth (m)")
    assert found.names == ("d18O",) and found.time_unit == ""
    assert not [p for p in concerns([found]) if p.code == "time column"]


def test_a_second_one_may_rise_and_so_may_the_only_one(tmp_path):
    """Totals do."""
    second = lp.read(written(tmp_path, "d18O,total", columns=(VALUES, STEPS)))
    alone = lp.read(written(tmp_path, "total", columns=(STEPS,)))
    assert not [p for p in (*concerns(second), *concerns(alone)) if p.code == "time column"]


def test_times_in_parquet_are_read_with_the_columns_asked_for(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"Time (s)": STEPS, "a": VALUES, "b": VALUES}).to_parquet(tmp_path / "data.parquet")
    (found,) = lp.read(tmp_path / "data.parquet", columns=["b"])
    assert found.names == ("b",) and found.time_unit == "s"


BEFORE = 'Please,cite:,"A. Author (2005), A stack\nof records"\nvolume,20\n,,\n'


def test_lines_before_the_table_are_noticed_and_can_be_left_out(tmp_path):
    path = written(tmp_path, "Time (ka),d18O", BEFORE)
    with pytest.raises(lp.SeriesError, match=r"seems to start at line 5 of the file \(Time \(ka\),d18O\).*skip=4"):
        lp.read(path)
    (found,) = lp.read(path, skip=4)
    np.testing.assert_allclose(found.times, STEPS)


def test_errors_name_the_line_of_the_whole_file(tmp_path):
    rows = VALUES.astype(object)
    rows[7] = "broken"
    with pytest.raises(lp.SeriesError, match=r"row 7 holds 'broken'.*line 13 of the file"):
        lp.read(written(tmp_path, "time,v", BEFORE, columns=(STEPS, rows)), skip=4)


def test_a_title_above_the_names_is_noticed(tmp_path):
    with pytest.raises(lp.SeriesError, match=r"start at line 2.*skip=1"):
        lp.read(written(tmp_path, "time,v", "Southern Oscillation Index,\n"))


@pytest.mark.parametrize("before", ["", "s,mV\n", "2000-01-01,3\n"])
def test_a_table_that_starts_at_once_is_left_alone(tmp_path, before):
    """A row of units, or one more of data, is told as it was."""
    path = tmp_path / "data.csv"
    rows = "".join(f"{t},{v}\n" for t, v in zip(STEPS, VALUES, strict=True))
    path.write_text("time,v\n" + before + rows)
    if not before:
        assert lp.read(path)
    else:
        with pytest.raises(lp.SeriesError, match="column 'time', row 0"):
            lp.read(path)


@pytest.mark.parametrize("skip", [-1, 1.5, "two"])
def test_lines_to_leave_out_are_counted(tmp_path, skip):
    with pytest.raises(lp.ConfigError, match="skip"):
        lp.read(written(tmp_path, "time,v"), skip=skip)


def test_more_lines_than_there_are(tmp_path):
    with pytest.raises(lp.SeriesError, match="skip=400 leaves nothing"):
        lp.read(written(tmp_path, "time,v"), skip=400)


def test_a_column_that_is_asked_for_as_the_time_is_no_channel_where_the_source_has_times_of_its_own():
    table = Table({"sec": np.arange(4.0), "x": np.ones(4)}, times=10.0 * np.arange(4))
    asked = read_clock(table, ReadOptions(time="sec"))
    assert asked.columns == ("sec",) and asked.times is not None and asked.times.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert read_clock(table, ReadOptions()).columns == ()
