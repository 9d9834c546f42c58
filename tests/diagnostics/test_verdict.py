"""A model beside simple methods: the verdict is what the laws of the forecasts make it."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter

import lamperti as lp
from lamperti.data.scaling import Scaler
from lamperti.data.training_data import record_training_data
from lamperti.diagnostics import judge
from lamperti.diagnostics.long_run import _compare
from lamperti.diagnostics.origins import UnseenForecasts
from lamperti.diagnostics.simple_methods import NEIGHBOURS, on_steps, simple_scores
from lamperti.diagnostics.unseen import Division, Span, divide
from lamperti.diagnostics.verdict import verdict_on
from lamperti.diagnostics.verdict_words import Findings, sentence_of
from lamperti.train.history import History

PHI, H, S = 0.8, 12, 100


def ar1(n, seed, phi=PHI):
    return lfilter([1.0], [1.0, -phi], np.random.default_rng(seed).normal(size=n + 100))[100:]


def forecasts(values, known, law, *, n_origins=40, first=20, dt=1.0, mask=None):
    """Forecasts with futures drawn by ``law(past, rng) -> [S, H]``, at origins spread over a series."""
    series = lp.Series(values, dt=dt, mask=mask)
    rows = np.unique(np.linspace(first, len(values) - H, n_origins).round().astype(int))
    rng = np.random.default_rng(7)
    samples = np.stack([law(values[:row], rng) for row in rows])[..., None]
    truth = np.stack([series.values[row : row + H] for row in rows])
    division = Division((Span(0, 0, len(values)),), tuple(lp.Series(k, dt=dt) for k in known), False)
    fans = tuple(SimpleNamespace(context=series[:row]) for row in rows)
    place = np.stack([np.zeros_like(rows), rows], axis=1)
    return UnseenForecasts(division, (series,), place, fans, samples, truth, (), 0)


def law_of(phi, sd=1.0, shift=0.0):
    def law(past, rng):
        path, y = np.empty((S, H)), np.full(S, past[-1])
        for h in range(H):
            path[:, h] = y = phi * y + shift + sd * rng.normal(size=S)
        return path

    return law


def model(step_unit="", **parts):
    config = SimpleNamespace(model=SimpleNamespace(window=8, bounded=True))
    about = {"history": History(status="patience"), "trained_on": None, "model": SimpleNamespace(latent_dim=2)}
    scaler = Scaler(np.zeros(1), np.ones(1), 1.0)
    return SimpleNamespace(
        **about | {"scaler": scaler, "names": ("y",), "step": 1.0, "step_unit": step_unit, "config": config} | parts
    )


def verdict(law, seed=1, step_unit="s", **parts):
    return verdict_on(forecasts(ar1(900, seed), [ar1(1500, 2)], law, **parts), model(step_unit))


def test_the_true_law_is_as_good_as_autoregression_on_autoregressive_data():
    found = verdict(law_of(PHI))
    assert found.kind == "as good" and [row.outcome for row in found.table] == ["as good"] * len(found.table)
    assert found.sentence.startswith("As good as linear autoregression")
    assert found.sentence.endswith("up to 12 s ahead, in forecasts of data that training has not seen.")
    assert found.advice == () and found.origins == 40


def test_a_wrong_law_is_worse_and_that_comes_first_with_the_method_and_the_horizons():
    found = verdict(law_of(PHI, shift=1.5))
    assert found.kind == "worse" and found.sentence.startswith("Worse than linear autoregression")
    assert "up to 12 s ahead" in found.sentence and any("autoregression" in text for text in found.advice)
    assert all(row.scores["model"].mean > row.scores["autoregression"].mean for row in found.table)


def test_who_knows_the_future_is_better():
    future = ar1(900, 1)

    def knows(past, rng):
        return future[len(past) : len(past) + H] + 0.1 * rng.normal(size=(S, H))

    found = verdict(knows)
    assert found.kind == "better"
    assert found.sentence.startswith("Better than every simple method up to 12 s ahead")


def test_good_near_and_bad_far_is_mixed_and_the_bad_is_said_first():
    future = ar1(900, 1)

    def turns(past, rng):
        path = future[len(past) : len(past) + H] + 0.1 * rng.normal(size=(S, H))
        return path + np.where(np.arange(H) >= 4, 6.0, 0.0)

    found = verdict(turns)
    assert found.kind == "mixed"
    assert [row.outcome for row in found.table] == ["better"] * 3 + ["worse"] * 3  # 1, 2, 3 and 5, 10, 12
    assert found.sentence.startswith("Worse than") and "from 5 to 12 s ahead; better than every" in found.sentence
    assert "up to 3 s ahead" in found.sentence


def test_equally_good_methods_are_seldom_called_better_or_worse():
    kinds = [verdict(law_of(PHI), seed=s).kind for s in range(10, 22)]
    assert kinds.count("as good") >= 9 and "worse" not in kinds


def test_the_table_has_the_means_and_errors_of_independent_origins():
    found = verdict(law_of(PHI))
    first = found.table[0]
    assert first.steps == 1 and first.time == 1.0 and first.origins == 40
    # of a normal forecast that is right: 1/sqrt(pi) sd on average
    assert abs(first.scores["model"].mean - 1 / np.sqrt(np.pi)) < 5 * first.scores["model"].se
    assert abs(first.scores["climatology"].mean - 1 / np.sqrt(np.pi) / 0.6) < 5 * first.scores["climatology"].se
    rows = found.rows()
    assert rows[0][0] == "ahead (s)" and rows[0][-1] == "verdict" and len(rows) == len(found.table) + 1
    assert found.short_rows()[1][0::4] == (rows[1][0], rows[1][-1]) and found.short_rows()[1][3] == first.against
    assert found.to_dict()["table"][0]["scores"]["model"]["mean"] == first.scores["model"].mean


def test_futures_that_leave_the_range_of_numbers_are_said_before_anything_else():
    def blows_up(past, rng):
        path = law_of(PHI)(past, rng)
        path[:5, 6:] = np.inf
        return path

    found = verdict(blows_up)
    assert found.sentence.startswith("Forecasts run away: 5% of the futures leave three times the range of the data; ")
    assert found.runaways == pytest.approx(0.05) and found.kind in ("worse", "mixed")
    assert any("trend" in text for text in found.advice)


def test_paths_that_escape_are_said_first():
    found = verdict_on(
        forecasts(ar1(900, 1), [ar1(1500, 2)], law_of(PHI)), model(), [SimpleNamespace(escape_share=0.25)]
    )
    assert found.sentence.startswith(
        "Left to itself, the model leaves three times the range of the data in 25% of paths; as"
    )


def test_paths_that_follow_a_trend_do_not_count_as_escaped():
    config = SimpleNamespace(model=SimpleNamespace(window=8, bounded=False))
    told = forecasts(ar1(900, 1), [ar1(1500, 2)], law_of(PHI))
    found = verdict_on(told, model(config=config), [SimpleNamespace(escape_share=0.25)])
    assert found.escapes == 0.0 and "Left to itself" not in found.sentence


def test_free_runs_that_are_not_like_the_data_are_said_after_the_forecasts():
    told = forecasts(ar1(900, 1), [ar1(1500, 2)], law_of(PHI))

    def alike(**wrong):
        return [SimpleNamespace(**{"escape_share": 0.0, "other_values": False, "other_spectrum": False} | wrong)]

    right = verdict_on(told, model(), alike()).sentence
    assert "left to itself" not in right
    wrong = verdict_on(told, model(), alike(other_values=True, other_spectrum=True)).sentence
    assert wrong == f"{right[:-1]}; but left to itself, the model has other values and spectrum than the data."


def test_values_are_others_beyond_what_the_halves_of_the_data_differ_by():
    rng = np.random.default_rng(0)
    steady, moving = rng.normal(size=(4, 500)), rng.normal(size=(4, 500)) + np.repeat([0.0, 1.0], 2)[:, None]
    for real, shift, other in ((steady, 0.05, False), (steady, 0.4, True), (moving, 0.4, False)):
        assert (
            _compare("y", real, rng.normal(size=(8, 500)) * real.std() + real.mean() + shift, 1.0).other_values is other
        )


def test_a_verdict_shows_its_sentence_at_the_prompt_and_its_table_in_a_notebook():
    found = verdict(law_of(PHI))
    assert repr(found) == f"Verdict({found.kind}: {found.sentence})"
    html = found._repr_html_()
    assert found.sentence in html and "best simple method" in html and html.count("<tr>") == 1 + len(found.table)
    assert "Unknown" in verdict_on(None, model())._repr_html_()


def test_lengths_of_time_take_a_larger_unit_in_place_of_powers_of_ten():
    outcomes = tuple((steps, "as good" if steps == 1 else "worse", NEIGHBOURS) for steps in (1, 3, 100))
    said = sentence_of(Findings(100, 20, step=16.0, unit="ms", outcomes=outcomes))
    assert "from 48 ms to 1.6 s ahead" in said and "up to 16 ms" not in said and "16 ms ahead" in said


def test_too_little_data_is_unknown_and_told_with_its_number():
    short = forecasts(ar1(36, 1), [ar1(500, 2)], law_of(PHI), n_origins=3)
    found = verdict_on(short, model("s"))
    assert found.kind == "unknown" and found.table == ()
    assert found.sentence.startswith("Unknown: too little data was held out") and "(36 samples" in found.sentence
    assert verdict_on(None, model()).kind == "unknown"


def test_a_season_is_a_method_only_where_the_training_data_has_one():
    t = np.arange(1500)
    wave = np.where(t % 6 == 0, 4.0, 0.0) + 0.1 * np.random.default_rng(0).normal(size=1500)
    found = verdict_on(forecasts(wave[:600], [wave[600:]], law_of(0.0)), model())
    assert "seasonal naive" in found.methods and found.kind == "worse" and "steps ahead" in found.sentence
    assert "seasonal naive" not in verdict(law_of(PHI)).methods


def test_uneven_steps_leave_out_the_methods_that_count_samples():
    found = forecasts(ar1(600, 1), [ar1(800, 2)], law_of(PHI))
    rng = np.random.default_rng(3)
    uneven = lp.Series(ar1(800, 2), times=np.cumsum(rng.uniform(0.5, 1.5, 800)))
    odd = dataclasses.replace(found, division=dataclasses.replace(found.division, known=(uneven,)))
    scores = simple_scores(odd, [1, 5], [0])
    assert set(scores.crps) == {"climatology", "persistence"} and "not evenly spaced" in scores.notes[0]


def test_gaps_are_bridged_for_simple_methods():
    values = ar1(900, 1)
    holes = np.random.default_rng(4).uniform(size=900) < 0.05
    gappy = forecasts(np.where(holes, 0.0, values), [ar1(1500, 2)], law_of(PHI), mask=~holes)
    whole = forecasts(values, [ar1(1500, 2)], law_of(PHI))
    scores = simple_scores(gappy, [1, 3], [0])
    assert set(scores.crps) == set(simple_scores(whole, [1, 3], [0]).crps) and scores.notes == ()
    assert np.isnan(scores.crps["autoregression"]).mean() < 0.2


def test_values_by_steps_have_gaps_where_samples_lack():
    series = lp.Series([1.0, 2.0, 4.0], times=[0.0, 1.0, 3.0])
    np.testing.assert_array_equal(on_steps(series)[:, 0], [1.0, 2.0, np.nan, 4.0])
    assert on_steps(lp.Series([1.0, 2.0, 4.0], times=[0.0, 1.4, 3.0])) is None


def test_horizons_are_spoken_of_in_their_unit_and_unknown_units_in_steps():
    outcomes = ((1, "better", "autoregression"), (5, "better", "autoregression"), (10, "worse", "climatology"))
    dated = sentence_of(Findings(100, 20, step=1.0, unit="days", outcomes=outcomes))
    assert "(climatology) 10 days ahead" in dated and "up to 5 days ahead" in dated
    plain = sentence_of(Findings(100, 20, step=0.25, outcomes=outcomes))
    assert "10 steps ahead" in plain and "up to 5 steps ahead" in plain


def test_rows_are_new_held_out_or_learned_from_whatever_file_they_come_in():
    whole = lp.Series(ar1(400, 5), names="y")
    record = record_training_data([whole[:300]], {0: ((270, 300),)})
    result = model(trained_on=record, data=())
    found = divide(result, [whole])
    assert found.unseen == ((0, 300, 400),) and not found.validation and found.n_unseen == 100
    assert found.remark == (
        "Of the 400 rows of these data, training learned from 270 and 30 chose when it stopped; scores are of the 100 "
        "new ones."
    )
    assert [one.length for one in found.known] == [270]
    same = divide(result, [whole[:300]])
    assert same.unseen == ((0, 270, 300),) and same.validation and same.remark == ""
    few = divide(result, [whole[:310]])
    assert few.unseen == ((0, 270, 310),) and few.validation and "10 new ones and of those that chose" in few.remark
    part = divide(result, [whole[200:290]], training=[whole[:300]])
    assert part.unseen == ((0, 70, 90),) and [one.length for one in part.known] == [270]
    assert divide(result, [whole[:250]]).unseen == ()


def test_a_model_without_data_has_no_verdict():
    assert judge(model(data=())).kind == "unknown"


def test_a_channel_counts_the_same_in_any_unit():
    one = forecasts(ar1(900, 1), [ar1(1500, 2)], law_of(PHI))
    unit = np.array([1.0, 1000.0])

    def doubled(series):
        return lp.Series(series.values * unit, times=series.times, names=("a", "b"))

    both = dataclasses.replace(
        one,
        series=tuple(map(doubled, one.series)),
        division=dataclasses.replace(one.division, known=tuple(map(doubled, one.division.known))),
        fans=tuple(SimpleNamespace(context=doubled(fan.context)) for fan in one.fans),
        samples=one.samples * unit,
        truth=one.truth * unit,
    )
    two = verdict_on(both, model("s", names=("a", "b"), scaler=Scaler(np.zeros(2), unit, 1.0)))
    for ours, theirs in zip(two.table, verdict_on(one, model("s")).table, strict=True):
        for name in ("model", "climatology"):
            assert ours.scores[name].mean == pytest.approx(theirs.scores[name].mean)
            assert ours.scores[name].se == pytest.approx(theirs.scores[name].se)
