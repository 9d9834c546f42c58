"""What is drawn of a model works for every number of coordinates, and says which of them are shown."""

from types import SimpleNamespace

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti import viz
from lamperti.diagnostics.slices import slices
from lamperti.report import space
from lamperti.viz import phase

DIMENSIONS = range(1, 13)


def _model(dim: int) -> SimpleNamespace:
    """What figures ask of a result. A real model of every dimension would take minutes to compile."""
    rng = np.random.default_rng(dim)

    def drift(x):
        return -x, 0.1 * np.ones_like(x)

    def diffusion(x):
        return np.ones_like(x), 0.1 * np.ones_like(x)

    dynamics = SimpleNamespace(Z=rng.normal(size=(8, dim)))
    return SimpleNamespace(
        model=SimpleNamespace(latent_dim=dim, dynamics=dynamics),
        states=rng.normal(size=(50, dim)),
        drift=drift,
        diffusion=diffusion,
        names=("y",),
        step=0.1,
        step_unit="s",
    )


def _states(dim: int) -> tuple[lp.Embedding, np.ndarray]:
    """States of the data and a free-running path."""
    rng = np.random.default_rng(100 + dim)
    cov = np.tile(0.01 * np.eye(dim), (60, 1, 1))
    return lp.Embedding(rng.normal(size=(60, dim)), cov, 0.1 * np.arange(60)), rng.normal(size=(200, dim))


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_figures_are_drawn_of_every_dimension_and_say_what_they_leave_out(dim, tmp_path, monkeypatch):
    embedding, path = _states(dim)
    monkeypatch.setattr(phase, "embed", lambda *args: embedding)
    monkeypatch.setattr(phase, "encoder_means", lambda *args: embedding.mean)
    monkeypatch.setattr(phase, "simulate", lambda *args, **options: SimpleNamespace(states=path[None]))
    figures = {3: viz.phase_space(_model(dim), fitted.data().series[0]), 4: viz.drift(_model(dim))}
    for shown, figure in figures.items():
        viz.write_png(figure, tmp_path / "figure.png", dpi=30)
        told = f"the first {shown} of {dim} coordinates" in figure.get_suptitle()
        assert told == (dim > shown)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_the_report_shows_every_dimension_and_says_what_it_leaves_out(dim):
    import plotly.graph_objects as go

    result = _model(dim)
    specs = {3: space.phase_space(result, *_states(dim)), 4: space.equation(slices(result))}
    for shown, found in specs.items():
        for spec in found:
            go.Figure({"data": spec.traces, "layout": spec.layout})
            assert (f"the first {shown} of {dim} coordinates" in spec.caption) == (dim > shown)
