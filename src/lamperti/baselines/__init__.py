"""Forecasts to be beaten: simple methods under one small interface.

```python
fitted = Simplex(horizon=50).fit(train, seed=0)
samples = fitted.forecast(series.values[:200], horizon=50, n_samples=256, seed=0)  # [S, H, P]
```
"""

from lamperti.baselines.autoregression import Autoregression
from lamperti.baselines.echo_state import EchoState
from lamperti.baselines.havok import Havok
from lamperti.baselines.interface import Baseline, Forecaster, Simulator
from lamperti.baselines.linear_state_space import LinearStateSpace
from lamperti.baselines.per_channel import PerChannel
from lamperti.baselines.seasonal_naive import SeasonalNaive
from lamperti.baselines.simplex import Simplex
from lamperti.baselines.trivial import Climatology, Persistence

__all__ = [
    "Autoregression",
    "Baseline",
    "Climatology",
    "EchoState",
    "Forecaster",
    "Havok",
    "LinearStateSpace",
    "PerChannel",
    "Persistence",
    "SeasonalNaive",
    "Simplex",
    "Simulator",
    "standard_baselines",
]


def standard_baselines(horizon: int) -> dict[str, Baseline]:
    """Every baseline with default options, for forecasts of up to ``horizon`` samples of one channel."""
    return {
        "climatology": Climatology(),
        "persistence": Persistence(horizon),
        "seasonal-naive": SeasonalNaive(horizon),
        "ar": Autoregression(),
        "simplex": Simplex(horizon),
        "linear-state-space": LinearStateSpace(),
        "echo-state": EchoState(horizon),
        "havok": Havok(horizon),
    }
