"""Configuration as TOML: that in force, and a file of all options to start from."""

import json
from typing import Any

from pydantic import BaseModel

from lamperti.config import Config, FitConfig, ModelConfig

_TABLES: dict[str, type[BaseModel]] = {"model": ModelConfig, "fit": FitConfig}


def to_toml(config: Config) -> str:
    """The configuration as TOML; what is None is left out, which means the same."""
    lines = []
    for name, table in {"model": config.model, "fit": config.fit}.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.model_dump().items() if value is not None]
        lines.append("")
    return "\n".join(lines)


def commented_toml() -> str:
    """Every option with what it does and its default; those without a default are commented out."""
    lines = ["# Options of lamperti fit --config. Options of the command line overrule them.", ""]
    for table, cls in _TABLES.items():
        lines += [f"# {(cls.__doc__ or '').strip().splitlines()[0]}", f"[{table}]"]
        for key, field in cls.model_fields.items():
            if field.description:
                lines.append(f"# {field.description}")
            missing = field.default is None
            lines.append(f"# {key} =" if missing else f"{key} = {_toml(field.default)}")
        lines.append("")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    # JSON's strings, numbers, booleans and lists of them are TOML's.
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
