"""How people write numbers, dates and headers into text files: understood as meant, or refused with the option."""

import numpy as np
import pandas as pd
import pytest

from lamperti._errors import ConfigError, SeriesError
from lamperti.data import check, read

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "data.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def column(*cells):
    """Cells that may hold commas, as the second of two columns, separated by semicolons."""
    return "time;x\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells))


# Marks in numbers

COMMA, POINTS = {"decimal": ","}, {"decimal": ",", "thousands": "."}


@pytest.mark.parametrize(
    ("options", "cell", "value"),
    [
        (COMMA, "1,5", 1.5),
        (COMMA, "-1,5e3", -1500.0),
        (COMMA, ",5", 0.5),
        (COMMA, "12", 12.0),
        (POINTS, "1.234,5", 1234.5),
        (POINTS, "1.234.567", 1234567.0),
        (POINTS, "1234,5", 1234.5),
        ({"thousands": ","}, "-1,234.5", -1234.5),
        ({"thousands": " "}, "1 234", 1234.0),
        ({"thousands": " "}, "1\u00a0234", 1234.0),
        ({"thousands": " "}, "1\u202f234", 1234.0),
        ({"thousands": "'"}, "1'234.5", 1234.5),
    ],
)
def test_a_number_written_with_declared_marks_is_that_number(table, options, cell, value):
    (series,) = read(table(column("1", cell, "3")), separator=";", **options)
    assert series.values[:, 0].tolist() == [1.0, value, 3.0]


@pytest.mark.parametrize(
    ("options", "cell", "way_out"),
    [
        ({"thousands": ","}, "1,5", r"groups of three digits.*decimal=\",\""),
        ({"thousands": ","}, "12,34,567", "groups of three digits"),
        ({"thousands": ","}, "1234,567", "groups of three digits"),
        ({"thousands": ","}, "0.1,234", "groups of three digits"),
        (POINTS, "1.7", r"groups of three digits.*decimal=\"\.\""),
        (POINTS, "1.2345", "groups of three digits"),
        (COMMA, "1.100", r"'\.', which was not declared.*thousands=\"\.\""),
        (COMMA, "1.7", r"'\.', which was not declared"),
        (COMMA, "1.234,5", r"'\.', which was not declared.*thousands=\"\.\""),
        (COMMA, "1 234,5", r"' ', which was not declared.*thousands=\" \""),
        ({"thousands": "."} | COMMA, "1'234", r"\"'\", which was not declared"),
        ({}, "1,5", r"decimal=\",\""),
        ({}, "1 234", r"thousands="),
    ],
)
def test_a_mark_out_of_place_or_not_declared_is_refused_in_its_row(table, options, cell, way_out):
    with pytest.raises(SeriesError, match=rf"column 'x', row 2 holds .*{way_out}.*Row 2 is line 4"):
        read(table(column("1", "2", cell, "4")), separator=";", **options)


def test_times_are_written_with_the_declared_marks_as_well(table):
    (series,) = read(table("time;x\n0,5;1\n1.000,5;2\n"), separator=";", **POINTS)
    assert series.times.tolist() == [0.5, 1000.5]
    with pytest.raises(SeriesError, match=r"column 'time', row 2 holds '1\.7'"):
        read(table("time;x\n0,5;1\n1;2\n1.7;3\n"), separator=";", **POINTS)
    path = table("day;x\n01.02.2024;1,5\n02.02.2024;2,5\n")
    assert read(path, separator=";", time="day", time_format="%d.%m.%Y", **POINTS)[0].dt == 86400.0


def test_booleans_are_no_numbers_whatever_marks_are_declared(table):
    with pytest.raises(SeriesError, match=r"column 'x' holds booleans.*codes='x'"):
        read(table(column("True", "False")), separator=";", decimal=",")
    (series,) = read(table(column("True", "False")), separator=";", decimal=",", codes="x")
    assert series.values[:, 0].tolist() == [1.0, 0.0]


def test_a_column_that_is_not_asked_for_may_hold_any_marks(table):
    (series,) = read(table("x;z\n1,5;1.7\n2,5;1.9\n"), separator=";", columns="x", **POINTS)
    assert series.values[:, 0].tolist() == [1.5, 2.5]


# A row that is no data


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("time,x", "column 'time', row 3 holds 'time', which is the header again"),
        ("Source: the ward,", "column 'time', row 3 holds 'Source: the ward', which is not a number"),
        ("3,Total", "column 'x', row 3 holds 'Total', which is not a number"),
        ("3,1_000", "column 'x', row 3 holds '1_000'.*thousands=\"_\""),
        ("1_000,3", "column 'time', row 3 holds '1_000'"),
        ("3,٣", "column 'x', row 3 holds '٣', which is not a number"),
        ("2024-01-01,3", "column 'time', row 3 holds '2024-01-01', .*dates and numbers"),
    ],
)
@pytest.mark.parametrize("more", ["", "4,5\n"])
def test_a_row_that_is_no_data_is_blamed_itself(table, row, said, more):
    with pytest.raises(SeriesError, match=rf"{said}.*Row 3 is line 5"):
        read(table(f"time,x\n0,1.5\n1,2.5\n2,4\n{row}\n{more}"))


def test_the_header_again_below_dates_is_blamed_itself(table):
    path = table("date,x\n2024-01-01,1.5\n2024-01-02,2.5\ndate,x\n2024-01-03,4\n")
    with pytest.raises(SeriesError, match="column 'date', row 2 holds 'date', which is the header again"):
        read(path)


def test_an_underscore_is_a_mark_like_others(table):
    assert read(table("x\n1_000\n2\n"), thousands="_")[0].values[:, 0].tolist() == [1000.0, 2.0]


# Dates written as numbers


@pytest.mark.parametrize(
    ("stamps", "time_format", "step"),
    [
        (["20230131", "20230201", "20230202"], "%Y%m%d", 86400),
        (["202312", "202401", "202402"], "%Y%m", 31 * 86400),
        (["2023013123", "2023020100", "2023020101"], "%Y%m%d%H", 3600),
        (["202301312359", "202302010000", "202302010001"], "%Y%m%d%H%M", 60),
        (["20230131235959", "20230201000000", "20230201000001"], "%Y%m%d%H%M%S", 1),
    ],
)
def test_dates_written_as_numbers_are_refused_until_it_is_said_what_they_are(table, stamps, time_format, step):
    path = table("when,x\n" + "".join(f"{stamp},{i}\n" for i, stamp in enumerate(stamps)))
    with pytest.raises(SeriesError, match=f"column 'when' .*{stamps[0]}.*time_format=\"{time_format}\".*time_unit="):
        read(path, time="when")
    (series,) = read(path, time="when", time_format=time_format)
    assert series.dt == step and series.time_unit.endswith("UTC")
    assert read(path, time="when", time_unit="ms")[0].times[0] == float(stamps[0])
    frame = pd.read_csv(path)
    for source in (frame, frame.assign(when=frame["when"].astype(float)), frame.set_index("when")):
        with pytest.raises(SeriesError, match="time_format="):
            read(source, time=None if source.index.name else "when")
        assert read(source, time=None if source.index.name else "when", time_format=time_format)[0].dt == step


def test_times_that_are_not_finite_are_no_dates():
    with pytest.raises(ConfigError, match="time_format= is for dates, but column 'time' holds none"):
        read(pd.DataFrame({"time": [np.inf, 2020.0], "x": [1, 2]}), time_format="%Y")


@pytest.mark.parametrize("stamps", [[20230131, 20230132, 20230133], [202301, 202302, 202303], [2019, 2020, 2021]])
def test_numbers_that_are_no_calendar_dates_stay_numbers(table, stamps):
    (series,) = read(table("time,x\n" + "".join(f"{t},1\n" for t in stamps)))
    assert series.times.tolist() == stamps


def test_dates_written_as_numbers_in_a_channel_are_suspected(table):
    rows = [f"{day:%Y%m%d},{np.sin(i)}" for i, day in enumerate(pd.date_range("2023-01-20", periods=60))]
    (found,) = [p for p in check(table("day,x\n" + "\n".join(rows))).problems if p.code == "time column"]
    assert found.where == "day" and "time='day'" in found.message and 'time_format="%Y%m%d"' in found.message


# Headers


@pytest.mark.parametrize("first", ["0,1", "1,2", "2019,2020", "0"])
def test_a_first_row_that_may_be_names_or_data_is_refused_until_it_is_said(table, first):
    cells = ["1.5,2.5", "0.5,7.5", "3.5,9.5"] if "," in first else ["1.5", "0.5", "3.5"]
    path = table("\n".join([first, *cells]))
    with pytest.raises(SeriesError, match=r"first row .* names of columns or data.*header=True.*header=False"):
        read(path)
    (named,) = read(path, header=True)
    assert named.names == tuple(first.split(",")) and named.length == 3
    (bare,) = read(path, header=False)
    assert bare.length == 4 and bare.values[0].tolist() == [float(cell) for cell in first.split(",")]


@pytest.mark.parametrize(
    "text",
    ["0,1\n0.5,3\n1.0,2\n1.5,4\n", "2019,2020\n2020,1999\n2021,2001\n", "0\n1\n2\n", "7,3\n1,2\n3,4\n", "5\n3\n2\n"],
)
def test_a_first_row_of_numbers_that_goes_on_below_is_data(table, text):
    (series,) = read(table(text))
    assert series.length == text.count("\n")


def test_that_there_is_a_header_can_be_said_of_text_only(table):
    with pytest.raises(ConfigError, match="header= is for text files"):
        read(pd.DataFrame({"x": [1, 2]}), header=True)
    with pytest.raises(ConfigError, match="header must be True or False"):
        read(table("x\n1\n2\n"), header="yes")
    with pytest.raises(SeriesError, match="column 'y', row 0 holds 'x'"):
        read(table("x\n1\n2\n"), header=False)


# The index that pandas writes

DAYS = pd.date_range("2024-01-01", periods=4)
FRAME = pd.DataFrame({"x": [1.5, 2.5, 0.5, 4.5], "z": [1, 2, 4, 3]})


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_unnamed_column_that_counts_rows_is_left_out_aloud(table, name):
    for start in (0, 1):
        text = FRAME.set_axis(range(start, start + 4)).to_csv()
        (series,) = read(table(name + text))
        assert series.names == ("x", "z") and series.times.tolist() == [0, 1, 2, 3]
        assert series.repairs == ("the first column has no name and counts the rows; it was left out",)
        assert read(table(name + text), dt=0.5)[0].dt == 0.5


@pytest.mark.parametrize(
    ("index", "steps"), [(DAYS, [86400.0] * 3), ([0.0, 0.5, 1.0, 3.0], [0.5, 0.5, 2.0]), ([3, 5, 6, 9], [2, 1, 3])]
)
def test_an_unnamed_column_of_times_is_time_as_the_index_is_in_memory(table, tmp_path, index, steps):
    frame = FRAME.set_axis(index)
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (table(frame.to_csv()), frame, tmp_path / "a.parquet"):
        (series,) = read(source)
        assert series.names == ("x", "z") and series.steps.tolist() == steps


def test_an_unnamed_column_of_words_is_refused_and_can_be_named(table):
    path = table(FRAME.set_axis(["a", "a", "b", "b"]).to_csv())
    with pytest.raises(SeriesError, match=r"first column has no name and holds 'a'.*id='index'"):
        read(path)
    first, second = read(path, id="index")
    assert (first.label, second.label, second.names) == ("a", "b", ("x", "z"))
    (series,) = read(path, columns=["x"])
    assert series.names == ("x",) and series.dt == 1.0


def test_an_index_that_counts_with_holes_gives_way_to_a_column_of_times(table, tmp_path):
    frame = FRAME.assign(time=[0.0, 0.1, 0.3, 0.4]).set_axis([4, 5, 7, 8])
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, table(frame.to_csv()), tmp_path / "a.parquet"):
        (series,) = read(source)
        assert series.names == ("x", "z") and series.times.tolist() == [0.0, 0.1, 0.3, 0.4]
        assert "index" in series.repairs[0] and "'time'" in series.repairs[0]


# Columns of times


@pytest.mark.parametrize("name", ["time", "t", "date", "datetime", "timestamp", "ds", "Date", "TIME", "DateTime"])
def test_columns_with_usual_names_are_the_times(table, tmp_path, name):
    frame = FRAME.assign(**{name: DAYS})
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, table(frame.to_csv(index=False)), tmp_path / "a.parquet"):
        for options in ({}, {"columns": ["x", "z"]}):
            (series,) = read(source, **options)
            assert series.names == ("x", "z") and series.dt == 86400.0


def test_two_columns_that_may_be_the_times_are_refused_until_one_is_named(table):
    path = table("date,time,x\n2024-01-01,12.5,1\n2024-01-02,13.5,2\n")
    with pytest.raises(SeriesError, match=r"'date' and 'time' may both be the times.*time='date'"):
        read(path)
    assert read(path, time="date", columns="x")[0].dt == 86400.0
    (series,) = read(table("time,t,x\n0,20.5,1\n1,20.7,2\n"), columns=["t", "x"])
    assert series.names == ("t", "x") and series.dt == 1.0


def test_what_is_named_as_a_date_and_is_none_is_refused_with_the_way_out(table):
    path = table("date,x\nMonday,1\nTuesday,2\n")
    with pytest.raises(SeriesError, match=r"column 'date', row 0 holds 'Monday'.*time_format=.*columns= and dt="):
        read(path)
    assert read(path, columns="x", dt=1.0)[0].dt == 1.0


# Characters that command a terminal


def test_control_and_bidi_characters_are_removed_from_headers_aloud(table):
    (series,) = read(table('ti\x1bme,"fl\u202eow\u2069\n(ml)",z\u200b\n0,1,2\n1,3,4\n'))
    assert series.names == ("flow (ml)", "z") and series.dt == 1.0
    assert series.repairs[0].startswith("characters that cannot be seen were removed from the names")
    with pytest.raises(SeriesError, match="'x' comes twice"):
        read(table("x,x\u200b\n1,2\n3,4\n"))


def test_names_keep_the_joiners_of_their_script(table):
    assert read(table("می\u200cروم\n1\n2\n"))[0].names == ("می\u200cروم",)
