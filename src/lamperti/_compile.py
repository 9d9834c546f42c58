"""One way to compile a function: ``equinox.filter_jit`` with the compiler options that suit these programs.

XLA's newer fusion emitters for the CPU turn the many small fused expressions of a training step into so much code that
compiling it takes half as long again and twice the memory, for a program that is no faster (docs/adr/0011).
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax

from lamperti._runtime import refuse_fork

_WANTED = {"xla_cpu_use_fusion_emitters": False}


def compiled(fun: Callable | None = None, **options: Any) -> Any:
    """``equinox.filter_jit`` with our compiler options; usable as a decorator, with or without arguments."""
    if fun is None:
        return functools.partial(compiled, **options)

    @functools.cache
    def program() -> Callable:
        # At the first call, not at import: asking the compiler starts jax's backend.
        settings: dict[str, Any] = {**options, "compiler_options": _compiler_options()}
        return eqx.filter_jit(fun, **settings)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse_fork()
        return program()(*args, **kwargs)

    return call


@functools.cache
def _compiler_options() -> Mapping[str, Any] | None:
    """The wanted options, if this release of jaxlib has them: they are not part of its promises."""
    try:
        jax.jit(lambda x: x, compiler_options=_WANTED).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return None
    return _WANTED
