"""One way to compile a function, and one place where compiled programs are kept.

A *program* is a function compiled for one shape of its arguments: the same function, shapes and options find the same
program, and nothing is compiled again. The programs used last are kept, others are let go: each holds up to a few
hundred of the memory maps that Linux grants a process (65,530 of them), and up to a hundred megabytes (docs/adr/0026).

XLA's newer fusion emitters for the CPU turn the many small fused expressions of a training step into so much code that
compiling it takes half as long again and twice the memory, for a program that is no faster (docs/adr/0011).
"""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lamperti._malloc import give_back
from lamperti._runtime import refuse_fork

_WANTED = {"xla_cpu_use_fusion_emitters": False}
_MOST = 64  # a fit and what is done with its result take 20 to 40


class Programs:
    """Compiled programs by what they were compiled for; beyond ``most``, the one that was used longest ago goes."""

    def __init__(self, most: int):
        self.most = most
        self.traces = 0
        """How often a function was traced, which comes before it is compiled."""
        self._kept: OrderedDict[Hashable, _Program] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Hashable, make: "Callable[[], _Program]") -> "_Program":
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()  # compiled at its first call, not under the lock
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
            return self._kept[key]


PROGRAMS = Programs(_MOST)


def compiled(fun: Callable | None = None, *, donate: bool = False, programs: Programs = PROGRAMS) -> Any:
    """A function that runs compiled; usable as a decorator, with or without arguments.

    Arrays among the leaves of its arguments are traced; all else is part of the program, and must be hashable.
    donate: the memory of arrays that are not in the first argument is the program's to reuse.
    Use it on functions of a module: one that is made anew by each call would be compiled anew, too.
    """
    if fun is None:
        return functools.partial(compiled, donate=donate, programs=programs)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse_fork()
        leaves, tree = jax.tree.flatten((args, kwargs))
        key = (fun, donate, tree, tuple(map(_kind, leaves)))
        n_kept = len(jax.tree.leaves(args[:1])) if donate else len(leaves)
        return programs.find(key, lambda: _Program(fun, leaves, tree, n_kept, programs))(leaves)

    return call


def to_jax(array: Any) -> jax.Array:
    """A NumPy array as jax's. ``jnp.asarray`` does that by a program, which it compiles for every shape."""
    return jax.device_put(np.array(array))  # of a copy, because jax may go on to use the memory that it is given


def _kind(leaf: Any) -> Hashable:
    """What of a leaf the program depends on."""
    return jax.typeof(leaf) if eqx.is_array(leaf) else (type(leaf), leaf)  # 1 == 1.0 == True


class _Program:
    """A function for one shape of arguments.

    jax's caches hold what they know of a function by weak references. ``flat`` is no one else's, so that all of it goes
    when this does."""

    def __init__(self, fun: Callable, leaves: Sequence[Any], tree: Any, n_kept: int, programs: Programs):
        arrays = [k for k, leaf in enumerate(leaves) if eqx.is_array(leaf)]
        fixed = [None if eqx.is_array(leaf) else leaf for leaf in leaves]
        self._kept, self._donated = [k for k in arrays if k < n_kept], [k for k in arrays if k >= n_kept]
        self._rest = rest = _Rest()
        self._new = True

        def flat(kept: list, donated: list) -> Any:
            programs.traces += 1
            full = list(fixed)
            for k, array in zip(arrays, (*kept, *donated), strict=True):
                full[k] = array
            args, kwargs = jax.tree.unflatten(tree, full)
            out, rest.of_result = eqx.partition(fun(*args, **kwargs), eqx.is_array)
            return out

        flat.__name__, flat.__qualname__ = fun.__name__, fun.__qualname__  # for jax's messages and profiles
        self._run = jax.jit(flat, donate_argnums=1, compiler_options=_compiler_options())

    def __call__(self, leaves: Sequence[Any]) -> Any:
        out = self._run([leaves[k] for k in self._kept], [leaves[k] for k in self._donated])
        # One program at a time: two that share the thread pool can wait for each other (docs/adr/0004).
        out = jax.block_until_ready(out)
        if self._new:
            self._new = False
            give_back()  # what the compiler used, and what it took to make the programs that were let go
        return eqx.combine(out, self._rest.of_result)


class _Rest:
    """What of a program's result is no array. It is known once the function has been traced."""

    of_result: Any = None


@functools.cache
def _compiler_options() -> dict[str, Any] | None:
    """The wanted options, if this release of jaxlib has them: they are not part of its promises."""
    try:
        jax.jit(lambda x: x, compiler_options=_WANTED).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return None
    return _WANTED
