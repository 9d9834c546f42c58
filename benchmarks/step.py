"""CPU-seconds of one training iteration, everything included, after warm-up.

    python benchmarks/step.py [--json] [--iterations 20] [--only a_default]

a_default, a_moment_matching: squared exponential, d=2, m=16, N=150, S=10, B=16.
b_particle: Matern 3/2, d=3, m=64, N=100, S=10, B=2, 200 particles.
Each case runs in a process of its own; peak memory is that process's. One trace a program is asserted.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

CASES = {
    "a_default": dict(latent_dim=2, n_inducing=16, length=150, batch=16),
    "a_moment_matching": dict(latent_dim=2, n_inducing=16, smoother="moment-matching", length=150, batch=16),
    "b_particle": dict(latent_dim=3, n_inducing=64, smoother="particle", kernel="matern32", length=100, batch=2),
}


def run_case(name: str, iterations: int, n_samples: int = 10) -> dict:
    """Time one case in this process."""
    began = time.monotonic()
    import jax
    import numpy as np

    from lamperti._compile import PROGRAMS
    from lamperti._process import while_training
    from lamperti.config import FitConfig, ModelConfig
    from lamperti.data import Scaler, Track, segment, systems
    from lamperti.train.build import build_model, choose
    from lamperti.train.loop import as_segment
    from lamperti.train.schedule import Schedule
    from lamperti.train.step import LearningRates, make_optimiser, make_step, start_state

    case = dict(CASES[name])
    length, batch = case.pop("length"), case.pop("batch")
    series = systems.lorenz(40, 400, dt=0.02, observation_noise=0.1, seed=0).series
    scaler = Scaler.from_series(series)
    tracks = [Track(scaler.values(s.values), s.mask, scaler.steps(s.steps)) for s in series]
    model = build_model(choose(ModelConfig(**case), tracks)[0], tracks, seed=0)
    segments = segment(tracks, length, model.encoder.lead)
    optimiser = make_optimiser(LearningRates())
    fit = FitConfig()
    step = make_step(optimiser, n_samples=n_samples, n_transitions=segments.n_transitions, span_rate=fit.span_rate)
    state = start_state(model, optimiser, key=jax.random.key(0))
    rng, schedule = np.random.default_rng(0), Schedule(0.1, 0.5, 20)

    def iterate(i: int):
        nonlocal state
        state, report = step(as_segment(segments.draw(rng, batch)), state, schedule.at(i, 0.0))
        return jax.block_until_ready(report)

    before = PROGRAMS.traces
    with while_training:
        iterate(0)
        first = time.monotonic() - began
        for i in range(1, 24):  # past the change of rates after the start
            iterate(i)
        cpu = time.process_time()
        for i in range(iterations):
            report = iterate(24 + i)
        cpu = (time.process_time() - cpu) / iterations
    traces = PROGRAMS.traces - before
    if traces != 1 or not bool(report.accepted):
        raise SystemExit(f"{name}: {traces} traces, accepted={bool(report.accepted)}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"cpu_seconds": cpu, "peak_gb": peak, "first_iteration_seconds": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object: case -> CPU-seconds")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(run_case(args.child, args.iterations)))
        return
    results = {}
    for name in [args.only] if args.only else CASES:
        command = [sys.executable, __file__, "--child", name, "--iterations", str(args.iterations)]
        results[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if not args.json:
            r = results[name]
            print(
                f"{name:20s} {r['cpu_seconds']:.4f} CPU-s/iteration   peak {r['peak_gb']:.2f} GB   "
                f"start to first iteration {r['first_iteration_seconds']:.1f} s"
            )
    if args.json:
        print(json.dumps({name: round(r["cpu_seconds"], 5) for name, r in results.items()}))


if __name__ == "__main__":
    main()
