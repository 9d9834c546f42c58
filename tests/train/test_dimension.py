"""Which number of coordinates a fit takes when it is left to the data."""

import pytest
from tests.fitted import data

import lamperti as lp
from lamperti import fitting
from lamperti.train.history import History

MODEL = lp.ModelConfig(n_inducing=8, window=6)


class _Learned(Exception):
    pass


@pytest.fixture
def trials(monkeypatch):
    """The dimensions that are tried, with these scores; training itself is left out."""
    tried = []

    def train(model, segments, validation, settings, *, checkpoint):
        tried.append((model.latent_dim, settings.max_iterations, settings.gauge_at))
        score = train.scores[model.latent_dim]
        if isinstance(score, Exception):
            raise score
        return model, History(status=train.status, best_score=score)

    def learn(walk, *_):
        raise _Learned(walk.config.model.latent_dim)

    monkeypatch.setattr(fitting, "train", train)
    monkeypatch.setattr(fitting, "_learn", learn)
    train.status, train.tried = "max_iterations", tried
    return train


def _taken(model=MODEL, fit=None) -> int:
    with pytest.raises(_Learned) as learned:
        lp.fit(data().series, model, fit)
    return learned.value.args[0]


@pytest.mark.parametrize(("scores", "wanted"), [((0.1, 0.2), 4), ((0.2, 0.1), 3), ((0.1, lp.TrainingError("no")), 3)])
def test_the_dimension_that_scores_better_after_a_short_training_is_taken(trials, monkeypatch, scores, wanted):
    monkeypatch.setattr("lamperti.train.build.suggest_dimension", lambda *_: 3)
    trials.scores = dict(zip((3, 4), scores, strict=True))
    assert _taken() == wanted
    assert trials.tried == [(3, 150, ()), (4, 150, ())]


def test_nothing_is_tried_where_it_was_said_or_is_not_worth_it(trials, monkeypatch):
    assert _taken(MODEL.model_copy(update={"latent_dim": 3})) == 3
    monkeypatch.setattr("lamperti.train.build.suggest_dimension", lambda *_: 2)
    assert _taken() == 2
    monkeypatch.setattr("lamperti.train.build.suggest_dimension", lambda *_: 3)
    assert _taken(fit=lp.FitConfig(max_iterations=599)) == 3
    assert _taken(fit=lp.FitConfig(validation_fraction=0.0)) == 3
    assert _taken(MODEL.model_copy(update={"window": 3})) == 3
    assert trials.tried == []


def test_who_stops_a_trial_stops_the_fit(trials, monkeypatch):
    monkeypatch.setattr("lamperti.train.build.suggest_dimension", lambda *_: 3)
    trials.status, trials.scores = "interrupted", {3: 0.0}
    with pytest.raises(KeyboardInterrupt):
        lp.fit(data().series, MODEL)
