"""The command line: ``lamperti check | demo | fit | forecast | simulate | embed | info``."""

from lamperti.cli._app import main

__all__ = ["main"]
