"""What tests of data share."""

import json
import warnings
from types import SimpleNamespace

import pytest

from lamperti.data.formats import _decoder, decoding


@pytest.fixture
def in_this_process(monkeypatch):
    """Decoders without a process for each file, which takes most of a second. What is read here cannot do harm."""

    others = decoding.subprocess.run

    def run(command, **options):
        if str(decoding._SCRIPT) not in command:
            return others(command, **options)
        kind, path, place, most, wanted = command[3:]
        out = _decoder.Writer(place, int(most), json.loads(wanted))
        try:
            with warnings.catch_warnings():  # which a decoder sets for its process
                _decoder.DECODERS[kind](path, out)
        except Exception as error:
            said = f"refused: {error}" if isinstance(error, _decoder.Refused) else f"{type(error).__name__}: {error}"
            return SimpleNamespace(returncode=1, stderr=said.encode())
        out.close()
        return SimpleNamespace(returncode=0, stderr=b"")

    monkeypatch.setattr(decoding.subprocess, "run", run)
