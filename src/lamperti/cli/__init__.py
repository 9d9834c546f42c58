"""The command line: ``lamperti check | demo | fit | resume | forecast | simulate | embed | info | export | config``."""

from lamperti.cli._app import main

__all__ = ["main"]
