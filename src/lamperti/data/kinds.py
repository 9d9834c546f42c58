"""Which library an object in memory comes from, told without importing any."""

from typing import Any

# Those whose tables narwhals reads, and xarray.
_LIBRARIES = (
    "pandas", "polars", "pyarrow", "xarray", "duckdb", "modin", "dask", "ibis", "pyspark", "sqlframe", "cudf",
    "narwhals",
)  # fmt: skip


def library_of(data: Any) -> str | None:
    """The library whose table (or part of one) this is, also by inheritance; "arrow" for any other object that hands
    out Arrow data; None for arrays, lists and the rest."""
    for kind in type(data).__mro__:
        root = kind.__module__.split(".")[0]
        if root in _LIBRARIES:
            return root
    return "arrow" if hasattr(type(data), "__arrow_c_stream__") else None
