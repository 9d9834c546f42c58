"""Model files."""


def save(result, path):
    raise NotImplementedError


def load(path):
    raise NotImplementedError
