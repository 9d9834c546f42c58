"""A disk that refuses one call."""

import errno
import os
import sys

CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir")
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO)


class Refusal:
    """The k-th of the calls that change the disk fails."""

    def __init__(self, monkeypatch, at: int, number: int):
        self.left, self.number = at, number
        for name in CALLS:
            monkeypatch.setattr(os, name, self._guarded(getattr(os, name)))

    def _guarded(self, call):
        def guarded(*args, **options):
            if sys._getframe(1).f_globals["__name__"] == "shutil":  # tidies up, and may fail at that
                return call(*args, **options)
            if call.__name__ == "mkdir" and os.path.isdir(args[0]):  # nothing is to be made
                return call(*args, **options)
            self.left -= 1
            if self.left == 0:
                raise OSError(self.number, os.strerror(self.number))
            return call(*args, **options)

        return guarded

    @property
    def calls(self) -> int:
        """How many calls there were, for a refusal at -1, which never comes."""
        return -1 - self.left
