"""Encoders: from a window of data to Gaussian potentials on the state."""

from lamperti.encoders._skip import HankelSkip
from lamperti.encoders.conv_gru import ConvGRU
from lamperti.encoders.window_mlp import WindowMLP

__all__ = ["ConvGRU", "HankelSkip", "WindowMLP"]
