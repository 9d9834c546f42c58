"""The command line: ``lamperti --help`` lists its commands."""

from lamperti.cli._app import main

__all__ = ["main"]
