"""Text files as instruments and numpy.savetxt write them: comments, and other separators than commas."""

import numpy as np
import pytest

import lamperti as lp
from lamperti import SeriesError

TIMES = np.round(0.25 * np.arange(6), 2)
VALUES = np.array([1.5, -2.0, 0.25, 3e-5, 4.0, 5.5])


def rows(separator):
    return "".join(f"{t}{separator}{v}\n" for t, v in zip(TIMES, VALUES, strict=True))


@pytest.mark.parametrize("separator", [" ", "   ", "\t", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_are_found_where_there_are_no_commas_and_told(tmp_path, separator, end):
    path = tmp_path / "data.txt"
    path.write_bytes(f"time{separator}x\n{rows(separator)}".replace("\n", end).encode())
    (found,) = lp.read(path)
    np.testing.assert_array_equal(found.times, TIMES)
    np.testing.assert_array_equal(found.values[:, 0], VALUES)
    assert found.names == ("x",) and any("separated by" in text for text in found.repairs)


def test_what_savetxt_writes_is_read_to_the_last_digit(tmp_path):
    array = np.random.default_rng(0).normal(size=(50, 3)) * 10.0 ** np.arange(-3, 3, 2)
    np.savetxt(tmp_path / "plain.dat", array)
    np.testing.assert_array_equal(lp.read(tmp_path / "plain.dat")[0].values, array)
    np.savetxt(tmp_path / "named.dat", array, header="recorded by K.\na b c")
    (named,) = lp.read(tmp_path / "named.dat")
    assert named.names == ("a", "b", "c")
    np.testing.assert_array_equal(named.values, array)


def test_columns_aligned_by_spaces_before_and_after(tmp_path):
    path = tmp_path / "data.dat"
    path.write_text(
        "  Time (s)   Voltage (mV)\n"
        + "".join(f"   {t:6.2f}   {v:9.4f}  \n" for t, v in zip(TIMES, VALUES, strict=True))
    )
    (found,) = lp.read(path)
    np.testing.assert_array_equal(found.times, TIMES)
    assert found.names == ("Voltage (mV)",) and found.time_unit == "s"


@pytest.mark.parametrize(
    "above, names",
    [
        ("# made in 2020, with care\n#\ntime,x\n", ("x",)),
        ("# time,x\n# A sentence, with two commas, in it\n\n", ("x",)),
        ("time,x\n#,mV\n# by K.\n", ("x",)),
        ("#time,x\n", ("x",)),
    ],
)
def test_comments_above_a_table_are_left_out_and_may_hold_its_names(tmp_path, above, names):
    path = tmp_path / "data.csv"
    path.write_text(above + rows(","))
    (found,) = lp.read(path)
    np.testing.assert_array_equal(found.times, TIMES)
    assert found.names == names and any("comment" in text for text in found.repairs)


def test_a_row_is_blamed_by_its_line_in_the_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("# one\n# two\ntime,x\n# mV\n" + rows(",") + "1.5,oops\n")
    with pytest.raises(SeriesError, match=r"row 6 holds 'oops'.*line 11 of the file"):
        lp.read(path)
    path.write_text("# one\n# time,x\n" + rows(",") + "1.5,oops\n")
    with pytest.raises(SeriesError, match=r"row 6 holds 'oops'.*line 9 of the file"):
        lp.read(path)


def test_a_comment_between_the_rows_is_blamed_and_an_empty_cell_is_none(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("time,x\n0,1\n1,2\n# paused\n2,3\n")
    with pytest.raises(SeriesError, match="row 2"):
        lp.read(path)
    path.write_text("x,y\n#N/A,1\n1,2\n3,3\n")
    (found,) = lp.read(path, missing="nan")
    assert found.mask[:, 0].tolist() == [False, True, True]


def test_decimal_commas_between_semicolons_are_still_asked_about(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("time;x\n0,5;1\n1,0;2\n1,5;4\n")
    with pytest.raises(SeriesError, match=r"separator=';', and decimal=\",\""):
        lp.read(path)
    (found,) = lp.read(path, separator=";", decimal=",")
    np.testing.assert_array_equal(found.times, [0.5, 1.0, 1.5])


def test_thousands_parted_by_spaces_are_no_columns(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x\n1 100\n1 200\n1 400\n")
    with pytest.raises(SeriesError, match="thousands"):
        lp.read(path)
    (found,) = lp.read(path, thousands=" ")
    assert found.values[:, 0].tolist() == [1100.0, 1200.0, 1400.0]


def test_names_that_do_not_fit_columns_parted_by_spaces_are_refused_with_the_way_out(tmp_path):
    path = tmp_path / "data.dat"
    path.write_text("time of day x\n" + rows(" "))
    with pytest.raises(SeriesError, match=r"4 words for 2 columns.*skip=1 and header=False"):
        lp.read(path)
    assert lp.read(path, skip=1, header=False)[0].values.shape == (6, 2)


@pytest.mark.parametrize("rows", ["0\t0.5\n1\t\t2.9\n2\t1.5\n", "0\t0.5\t\n1\t\t2.9\n2\t1.5\n"])
def test_empty_cells_between_tabs_stay_where_they_are(tmp_path, rows):
    path = tmp_path / "data.txt"
    path.write_text("t\ta\tb\n" + rows)
    (found,) = lp.read(path, missing="nan")
    assert found.names == ("a", "b")
    np.testing.assert_array_equal(found.values, [[0.5, np.nan], [np.nan, 2.9], [1.5, np.nan]])


@pytest.mark.parametrize("separator", [None, " "])
def test_a_row_with_fewer_words_is_blamed_and_not_shifted(tmp_path, separator):
    path = tmp_path / "data.txt"
    path.write_text("t x y\n" + "".join(f"{k} {k}.5 1\n" for k in range(80)) + "80     -2.3\n")
    with pytest.raises(SeriesError, match=r"row 80 holds 2 words .* for 3 columns"):
        lp.read(path, missing="nan", separator=separator)


def test_words_for_missing_values_between_spaces_are_read_or_blamed_by_their_row(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("t x\n" + "".join(f"{k} {'NA' if k == 5 else k}\n" for k in range(12)))
    assert lp.read(path, missing="nan")[0].mask[:, 0].tolist() == [k != 5 for k in range(12)]
    path.write_text(path.read_text().replace("NA", "-"))
    with pytest.raises(SeriesError, match="column 'x', row 5 holds '-'"):
        lp.read(path)


@pytest.mark.parametrize("cell", ["#VALUE!", "#DIV/0!", "########", "#1"])
def test_cells_that_begin_with_a_hash_are_no_comments(tmp_path, cell):
    path = tmp_path / "data.csv"
    path.write_text(f"x,y\n{cell},0\n1.5,2.9\n2.5,3.5\n")
    with pytest.raises(SeriesError, match="row 0 holds"):
        lp.read(path)


@pytest.mark.parametrize(
    "comments, names",
    [
        ("# t x\n# recorded yesterday\n", ("x",)),
        ("# t, x\n# s, mV\n", ("x",)),
        ("# time x\n# rate: 10Hz\n", ("x",)),
        ("# time x\n# [s] [s]\n", ("x",)),
        ("#\ttime\tx\n", ("x",)),
    ],
)
def test_of_several_comments_the_one_with_a_time_names_the_columns(tmp_path, comments, names):
    path = tmp_path / "data.csv"
    mark = "," if "," in comments else "\t" if "\t" in comments else " "
    first = "7\t" if "\t" in comments else ""
    path.write_text(comments + "".join(first.replace("7", str(k)) + f"{0.5 * k}{mark}{k * k}\n" for k in range(9)))
    (found,) = lp.read(path)
    assert found.names == names and any("those of a comment" in text for text in found.repairs)
    np.testing.assert_allclose(found.times, 0.5 * np.arange(9))


def test_blank_lines_above_a_table_are_counted(tmp_path):
    path = tmp_path / "data.dat"
    path.write_text("\n\nt x\n0 1\n1 2\n1 3\n")
    with pytest.raises(SeriesError, match="line 6 of the file"):
        lp.read(path)
