"""Anyone's recordings, as their owner would try them: learn from the first part with defaults, forecast the rest.

    python benchmarks/strangers.py FILE [FILE:COLUMN ...] [--share 0.67] [--seed 0] [--out RESULTS.json]

Each file is read by `lamperti.read` without options but ``missing="nan"``. The model learns from the first share of the
samples and says what it thinks of itself (``verdict``, from what training held out); then it is judged beside simple
methods on the rest, which nothing has seen. Rows that are in the results already are not run again.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import lamperti as lp
from lamperti.data.files import atomic_write
from lamperti.diagnostics.origins import forecast_unseen
from lamperti.diagnostics.verdict import MODEL, judge

N_ORIGINS = 48
LEVEL = 0.9


def try_recording(path: str, column: str | None, *, share: float, seed: int) -> dict:
    """One recording: what was chosen, the model's own verdict, and what later data say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lp.LampertiWarning)
        series = lp.read(path, missing="nan", **({"columns": [column]} if column else {}))[0]
        first = series[: int(share * len(series))]
        started, cpu = time.monotonic(), time.process_time()
        result = lp.fit([first], fit=lp.FitConfig(seed=seed), progress=False)
        seconds, cpu = time.monotonic() - started, time.process_time() - cpu
        own = result.verdict
        later = judge(result, [series], n_origins=N_ORIGINS, seed=seed)
        found = forecast_unseen(result, [series], n_origins=N_ORIGINS, seed=seed)
    model = result.config.model
    rows = [
        {
            "steps": row.steps,
            "model": row.scores[MODEL].mean,
            "best": min(s.mean for name, s in row.scores.items() if name != MODEL),
            "method": min((s.mean, name) for name, s in row.scores.items() if name != MODEL)[1],
            "outcome": row.outcome,
            "coverage": _coverage(found, row.steps),
            "scores": {name: s.mean for name, s in row.scores.items()},
        }
        for row in later.table
    ]
    by_mean = (
        {name: np.mean([r["scores"][name] / r["best"] for r in rows]) for name in rows[0]["scores"]} if rows else {}
    )
    best = min((v, name) for name, v in by_mean.items() if name != MODEL)[1] if rows else ""
    return {
        "samples": len(series),
        "channels": len(series.names),
        "dimension": model.latent_dim,
        "window": model.window,
        "kernel": model.kernel,
        "bounded": model.bounded,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "own_verdict": own.sentence,
        "later_verdict": later.sentence,
        "escapes": later.escapes,
        "runaways": later.runaways,
        "over_best": float(by_mean[MODEL] / by_mean[best]) if rows else None,
        "best": best,
        "rows": rows,
        "warnings": [str(w.message) for w in caught if issubclass(w.category, lp.LampertiWarning)],
    }


def _coverage(found, steps: int) -> float:
    """Share of the values so far ahead in the central interval."""
    samples, truth = found.samples[:, :, steps - 1], found.truth[:, steps - 1]
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    known = np.isfinite(truth)
    return float(((truth >= low) & (truth <= high))[known].mean())


def show(name: str, found: dict) -> None:
    over = "–" if found["over_best"] is None else f"{found['over_best']:.3f} of {found['best']}"
    kind = f"{found['dimension']} {found['kernel']} window {found['window']}{'' if found['bounded'] else ' unbounded'}"
    print(f"{name}: {over}; {found['samples']} samples, {kind}, {found['cpu_seconds']:.0f} CPU-s", flush=True)
    print(f"   own: {found['own_verdict']}\n   later: {found['later_verdict']}")
    for r in found["rows"]:
        score = f"{r['model']:.4f}  {r['best']:.4f} {r['method']:20s} {r['outcome']:8s}"
        print(f"   {r['steps']:4d}  {score} coverage {r['coverage']:.2f}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE[:COLUMN]")
    parser.add_argument("--share", type=float, default=0.67)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    kept = json.loads(args.out.read_text()) if args.out and args.out.exists() else {}
    for item in args.files:
        path, _, column = item.partition(":")
        name = f"{Path(path).stem}{':' + column if column else ''} seed {args.seed}"
        if name not in kept:
            kept[name] = try_recording(path, column or None, share=args.share, seed=args.seed)
            if args.out:
                atomic_write(args.out, (json.dumps(kept, indent=1) + "\n").encode())
        show(name, kept[name])


if __name__ == "__main__":
    main()
