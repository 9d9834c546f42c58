"""Scores of probabilistic forecasts, horizon by horizon.

Notation   samples: ensemble [R, S, H, P] (R forecast origins, S members, H horizons, P channels)
           truth:   what happened [R, H, P]; NaN where unknown: the score is NaN too and left out of the means
Equations  CRPS(F, y) = E|X - y| - E|X - X'|/2; the fair estimate averages |X_i - X_j| over i != j only, so
           its expectation does not depend on S and ensembles of different sizes can be compared
           skill fraction = (S_clim - S_model) / (S_clim - S_oracle)

An ensemble with a non-finite member scores +inf and covers nothing: a path that blew up is never dropped.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import special, stats

from lamperti._errors import ConfigError

Samples = Float[np.ndarray, "R S H P"]
Truth = Float[np.ndarray, "R H P"]
PerOrigin = Float[np.ndarray, "R H P"]


@dataclass(frozen=True)
class HorizonMean:
    """A score averaged over forecast origins, with its standard error (origins taken as independent)."""

    mean: Float[np.ndarray, "H P"]
    se: Float[np.ndarray, "H P"]


@dataclass(frozen=True)
class Uniformity:
    """Whether PIT values are uniform: the Cramer-von Mises statistic and its p-value."""

    statistic: Float[np.ndarray, "H P"]
    p_value: Float[np.ndarray, "H P"]


def _check(samples: Samples, truth: Truth, least: int = 2) -> None:
    if samples.ndim != 4 or truth.shape != (samples.shape[0], *samples.shape[2:]):
        raise ConfigError(
            f"samples must be [R, S, H, P] and truth [R, H, P]; got {samples.shape} and {truth.shape}. "
            "Scalar series keep a last axis of length 1."
        )
    if samples.shape[1] < least:
        raise ConfigError(
            f"this score needs at least {least} ensemble members, got {samples.shape[1]}. Draw more samples."
        )


def _finite_ensembles(samples: Samples) -> tuple[Samples, Bool[np.ndarray, "R H P"]]:
    """The samples with broken ensembles zeroed out, and which ensembles are whole."""
    whole = np.asarray(np.isfinite(samples).all(axis=1))
    return np.where(whole[:, None], samples, 0.0), whole


def _mark_broken(score: PerOrigin, whole: Bool[np.ndarray, "R H P"], truth: Truth) -> PerOrigin:
    return np.where(np.isnan(truth), np.nan, np.where(whole, score, np.inf))


def crps(samples: Samples, truth: Truth) -> PerOrigin:
    """Fair CRPS of every forecast, in the units of the data; lower is better."""
    import scoringrules  # imported here: it compiles with numba where that is installed, some seconds

    _check(samples, truth)
    finite, whole = _finite_ensembles(samples)
    # "pwm" is the fair estimate written with order statistics: O(S log S) where "fair" builds an S x S table.
    score = scoringrules.crps_ensemble(truth, finite, m_axis=1, estimator="pwm", backend="numpy")
    return _mark_broken(np.asarray(score), whole, truth)


def gaussian_crps(mean: PerOrigin, sd: PerOrigin, truth: Truth) -> PerOrigin:
    """CRPS of Gaussian forecasts, in closed form."""
    import scoringrules

    return np.asarray(scoringrules.crps_normal(truth, mean, sd, backend="numpy"))


def energy_score(samples: Samples, truth: Truth) -> Float[np.ndarray, "R H"]:
    """Fair energy score over the P channels together; the CRPS where P = 1. Scale channels alike first."""
    import scoringrules

    _check(samples, truth)
    finite, whole = _finite_ensembles(samples)
    score = np.stack(
        [  # one horizon at a time: the estimate holds every pair of members
            np.asarray(scoringrules.es_ensemble(truth[:, h], finite[:, :, h], estimator="fair", backend="numpy"))
            for h in range(truth.shape[1])
        ],
        axis=1,
    )
    return np.where(np.isnan(truth).any(axis=-1), np.nan, np.where(whole.all(axis=-1), score, np.inf))


def gaussian_log_score(mean: PerOrigin, sd: PerOrigin, truth: Truth) -> PerOrigin:
    """-log N(truth | mean, sd^2) in nats; lower is better."""
    return 0.5 * np.log(2 * np.pi) + np.log(sd) + 0.5 * ((truth - mean) / sd) ** 2


def moment_log_score(samples: Samples, truth: Truth) -> PerOrigin:
    """Log score of the normal distribution with the ensemble's mean and variance (Dawid-Sebastiani, in nats).

    Proper, since it only asks for the first two moments to be right, but blind to the shape: for a forecast
    with two modes it is not the log score. It needs no density estimate.
    """
    _check(samples, truth)
    finite, whole = _finite_ensembles(samples)
    sd = finite.std(axis=1, ddof=1)
    whole = whole & (sd > 0)
    return _mark_broken(gaussian_log_score(finite.mean(axis=1), np.where(whole, sd, 1.0), truth), whole, truth)


def kernel_log_score(samples: Samples, truth: Truth, bandwidth: float | None = None) -> PerOrigin:
    """-log of the mixture of normal kernels about the members, at the truth, in nats; lower is better.

    Unlike the moment score it sees more than one mode. ``bandwidth`` is the sd of a kernel in sds of the ensemble,
    by default 1.06 S^(-1/5): right for a normal forecast, too wide for sharp modes. A mixture of S members says
    little of tails beyond them: a truth far outside costs what the normal tail of the nearest kernel makes it cost.
    """
    _check(samples, truth)
    finite, whole = _finite_ensembles(samples)
    sd = finite.std(axis=1, ddof=1)
    whole = whole & (sd > 0)
    n = samples.shape[1]
    width = (1.06 * n**-0.2 if bandwidth is None else bandwidth) * np.where(whole, sd, 1.0)
    z = (truth[:, None] - finite) / width[:, None]
    density = special.logsumexp(-0.5 * z**2, axis=1) - np.log(n * width * np.sqrt(2 * np.pi))
    return _mark_broken(-np.asarray(density), whole, truth)


def covered(samples: Samples, truth: Truth, level: float = 0.9) -> PerOrigin:
    """1 where the central interval of this level holds the truth, 0 where not, NaN where it is unknown.

    The interval lies between order statistics j and S+1-j with j = (S+1)(1-level)/2, for which the expected
    coverage of a calibrated ensemble is the level itself at any S.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, got {level}. Write 0.9 for a 90 % interval.")
    tail = (1 - level) / 2
    _check(samples, truth, least=int(np.ceil(1 / tail - 1 - 1e-9)))
    finite, whole = _finite_ensembles(samples)
    low, high = np.quantile(finite, [tail, 1 - tail], axis=1, method="weibull")
    inside = whole & (low <= truth) & (truth <= high)
    return np.where(np.isnan(truth), np.nan, inside.astype(float))


def pit(samples: Samples, truth: Truth, *, seed: int = 0) -> PerOrigin:
    """Probability integral transform, uniform on (0, 1) for a calibrated ensemble.

    The rank of the truth among the S members is spread uniformly over its bin, ties at random (so a seed).
    A non-finite member counts as larger than the truth.
    """
    _check(samples, truth)
    rng = np.random.default_rng(seed)
    members = np.where(np.isfinite(samples), samples, np.inf)
    below = (members < truth[:, None]).sum(axis=1)
    ties = (members == truth[:, None]).sum(axis=1)
    rank = below + rng.integers(0, ties + 1)
    value = (rank + rng.uniform(size=truth.shape)) / (samples.shape[1] + 1)
    return np.where(np.isnan(truth), np.nan, value)


def pit_uniformity(values: PerOrigin) -> Uniformity:
    """Cramer-von Mises test of the PIT of every horizon against the uniform law, origins taken as independent.

    A calibrated forecast has a statistic of 1/6 on average at any number of origins, under 0.46 in 95 % of cases;
    a miscalibrated one has a statistic that grows with the number of origins.
    """
    flat = values.reshape(len(values), -1)
    columns = [column[~np.isnan(column)] for column in flat.T]
    if min(map(len, columns)) < 2:
        raise ConfigError("a test of uniformity needs two known values a horizon. Add origins.")
    found = [stats.cramervonmises(column, "uniform") for column in columns]
    shape = values.shape[1:]
    return Uniformity(
        np.array([f.statistic for f in found]).reshape(shape), np.array([f.pvalue for f in found]).reshape(shape)
    )


def horizon_mean(score: PerOrigin, block: int = 1) -> HorizonMean:
    """Average over origins, with the standard error of that average; NaN entries are left out.

    One infinite score makes the mean and its error infinite. ``block``: so many origins in a row depend on each other
    (their futures overlap), so that the error is taken from the means of such blocks, of which there must be two.
    """
    if block > 1:
        n_blocks = len(score) // block
        if n_blocks < 2:
            raise ConfigError(f"{len(score)} origins are not two blocks of {block}. Add origins.")
        means = np.stack([horizon_mean(part).mean for part in np.array_split(score, n_blocks)])
        return HorizonMean(horizon_mean(score).mean, horizon_mean(means).se)
    known = ~np.isnan(score)
    count = known.sum(axis=0)
    if np.any(count < 2):
        raise ConfigError(f"a mean with its error needs two known scores a horizon, got {count.min()}. Add origins.")
    mean = np.where(known, score, 0.0).sum(axis=0) / count
    finite = np.isfinite(mean)
    deviation = np.subtract(score, mean, out=np.zeros_like(score), where=known & finite)
    se = np.sqrt((deviation**2).sum(axis=0) / (count - 1) / count)
    return HorizonMean(mean, np.where(finite, se, np.inf))


def skill_fraction(
    climatology: Float[np.ndarray, "*H"], model: Float[np.ndarray, "*H"], oracle: Float[np.ndarray, "*H"]
) -> Float[np.ndarray, "*H"]:
    """(S_clim - S_model) / (S_clim - S_oracle) of mean scores: 0 is climatology, 1 the limit.

    NaN where the oracle does not beat climatology: nothing can be forecast there, and the fraction is void.
    """
    gain = np.asarray(climatology) - np.asarray(oracle)
    possible = gain > 0
    return np.where(possible, (climatology - model) / np.where(possible, gain, 1.0), np.nan)


def skill(climatology: PerOrigin, model: PerOrigin, oracle: PerOrigin, block: int = 1) -> HorizonMean:
    """Skill fraction with its standard error, from the three scores of the same forecast origins (in blocks, if they
    overlap: see ``horizon_mean``).

    The error is the delta method on paired origins: what is hard for all three cancels.
    """
    if np.any(np.isnan(model) != np.isnan(oracle)) or np.any(np.isnan(model) != np.isnan(climatology)):
        raise ConfigError("the three scores must be known at the same origins. Score them against the same truth.")
    means = [horizon_mean(s).mean for s in (climatology, model, oracle)]
    fraction = skill_fraction(*means)
    usable = np.isfinite(fraction)
    # the influence of one origin on a ratio of means
    residual = (climatology - oracle) * np.where(usable, fraction, 0.0)
    residual = np.subtract(climatology - model, residual, out=np.zeros_like(residual), where=usable)
    gain = np.where(usable, means[0] - means[2], 1.0)
    return HorizonMean(fraction, np.where(usable, horizon_mean(residual, block).se / gain, np.inf))


def ratio(model: PerOrigin, reference: PerOrigin, block: int = 1) -> HorizonMean:
    """Mean score over that of a reference at the same origins, with its standard error (delta method on paired origins,
    in blocks if they overlap: see ``horizon_mean``).

    NaN where the reference is not above 0: beside someone who never errs every error is infinitely large.
    """
    if np.any(np.isnan(model) != np.isnan(reference)):
        raise ConfigError("both scores must be known at the same origins. Score them against the same truth.")
    above, below = horizon_mean(model).mean, horizon_mean(reference).mean
    possible = below > 0
    found = np.where(possible, above / np.where(possible, below, 1.0), np.nan)
    usable = np.isfinite(found)
    residual = np.subtract(model, reference * np.where(usable, found, 0.0), out=np.zeros_like(model), where=usable)
    residual = np.where(np.isnan(model), np.nan, residual)
    error = horizon_mean(residual, block).se / np.where(usable, below, 1.0)
    return HorizonMean(found, np.where(usable, error, np.inf))
