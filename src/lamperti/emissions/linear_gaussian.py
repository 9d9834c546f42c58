"""y = C x + c + N(0, diag(noise)), fitted in closed form from running averages.

Notation   C: loadings [P, D]      c: offset [P]      noise: variances [P]      z = (x, 1): [D + 1]
           moments, for each channel over the samples where it was observed:
           zz = E[z z'], zy = E[z y], yy = E[y^2]; the least-squares fit is exact in them
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.interfaces import AbstractEmission, Potentials
from lamperti.math.factor import factorise
from lamperti.math.gaussian import LOG_2PI

# In standardised units: below a thousandth of the signal's sd, noise is rounding.
NOISE_FLOOR = 1e-6
_RIDGE = 1e-8


class EmissionMoments(eqx.Module):
    """Averages of the sufficient statistics."""

    zz: Float[Array, "P E E"]
    zy: Float[Array, "P E"]
    yy: Float[Array, " P"]

    def blend(self, new: "EmissionMoments", rate: Scalar, seen: Bool[Array, " P"]) -> "EmissionMoments":
        """Running average; a channel that the batch has not seen keeps what it had."""
        r = jnp.where(seen, rate, 0.0)
        return EmissionMoments(
            (1 - r[:, None, None]) * self.zz + r[:, None, None] * new.zz,
            (1 - r[:, None]) * self.zy + r[:, None] * new.zy,
            (1 - r) * self.yy + r * new.yy,
        )


class LinearGaussian(AbstractEmission):
    """Linear emission with diagonal noise; conjugate to Gaussian chains, so its likelihood enters them exactly."""

    C: Float[Array, "P D"]
    c: Float[Array, " P"]
    noise: Float[Array, " P"]
    moments: EmissionMoments

    def potentials(self, y: Float[Array, "T P"], mask: Bool[Array, "T P"]) -> Potentials:
        weight = mask / self.noise
        return Potentials(jnp.einsum("tp,pi,pj->tij", weight, self.C, self.C), (weight * (y - self.c)) @ self.C)

    def log_density(self, y: Float[Array, "T P"], mask: Bool[Array, "T P"], x: Float[Array, "T D"]) -> Scalar:
        each = (y - self.mean(x)) ** 2 / self.noise + jnp.log(self.noise) + LOG_2PI
        return -0.5 * jnp.sum(jnp.where(mask, each, 0.0))

    def mean(self, x: Float[Array, "*K D"]) -> Float[Array, "*K P"]:
        return x @ self.C.T + self.c

    def sample(self, x: Float[Array, "*K D"], *, key: PRNGKeyArray) -> Float[Array, "*K P"]:
        mean = self.mean(x)
        return mean + jnp.sqrt(self.noise) * jax.random.normal(key, mean.shape)

    def updated(
        self,
        y: Float[Array, "B T P"],
        mask: Bool[Array, "B T P"],
        x: Float[Array, "B S T D"],
        rate: Scalar,
    ) -> "LinearGaussian":
        """Blend in the statistics of sampled states and refit. The noise includes the states' own uncertainty,
        because every sample counts."""
        new, seen = emission_moments(y, mask, x)
        return refit(self.moments.blend(new, rate, seen))

    def turned(self, T: Float[Array, "D D"]) -> "LinearGaussian":
        lift = jnp.eye(T.shape[0] + 1).at[:-1, :-1].set(T)
        m = self.moments
        moments = EmissionMoments(jnp.einsum("ij,pjk,lk->pil", lift, m.zz, lift), m.zy @ lift.T, m.yy)
        # not refitted: calibration sets loadings and noise to what the moments do not say
        return LinearGaussian(self.C @ jnp.linalg.inv(T), self.c, self.noise, moments)


def emission_moments(
    y: Float[Array, "B T P"], mask: Bool[Array, "B T P"], x: Float[Array, "B S T D"]
) -> tuple[EmissionMoments, Bool[Array, " P"]]:
    """Averages over the observed samples of each channel, and which channels have any."""
    z = jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1))], axis=-1)
    mean_z = jnp.mean(z, axis=1)
    mean_zz = jnp.einsum("bsti,bstj->btij", z, z) / x.shape[1]
    count = jnp.sum(mask, axis=(0, 1)).astype(float)
    per = mask / jnp.maximum(count, 1.0)
    filled = jnp.where(mask, y, 0.0)
    moments = EmissionMoments(
        jnp.einsum("btp,btij->pij", per, mean_zz),
        jnp.einsum("btp,bti->pi", per * filled, mean_z),
        jnp.sum(per * filled**2, axis=(0, 1)),
    )
    return moments, count > 0


def refit(m: EmissionMoments) -> LinearGaussian:
    """Least squares from moments, channel by channel (no batched solver: docs/adr/0004)."""
    rows, noise = [], []
    for zz, zy, yy in zip(m.zz, m.zy, m.yy, strict=True):
        ridge = _RIDGE * jnp.trace(zz) * jnp.eye(zz.shape[0])
        rows.append(factorise(zz + ridge).inverse @ zy)
        noise.append(yy - 2.0 * rows[-1] @ zy + rows[-1] @ zz @ rows[-1])
    weight = jnp.stack(rows)
    return LinearGaussian(weight[:, :-1], weight[:, -1], jnp.maximum(jnp.stack(noise), NOISE_FLOOR), m)
