"""``lamperti config init``."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from lamperti._errors import ConfigError
from lamperti.cli._output import check_output_file
from lamperti.cli._say import say
from lamperti.cli._toml import commented_toml
from lamperti.data.files import atomic_write

config = App(name="config", help="Configuration files.")
_DEFAULT = Path("lamperti.toml")


@config.command
def init(file: Annotated[Path, Parameter(name="FILE")] = _DEFAULT, /, *, overwrite: bool = False) -> None:
    """Write a commented file with every option of fit and its default, to edit and pass as --config.

    Args:
        file: TOML file to write
        overwrite: replace the file if there is one
    """
    if file.exists() and not overwrite:
        raise ConfigError(f"{file} exists already. Choose another name, or pass --overwrite.")
    check_output_file(file)
    atomic_write(file, commented_toml().encode())
    say(
        f"{file}: all options with their defaults. Use it with: lamperti fit DATA --config {file} --out RUN",
        {},
        as_json=False,
    )
