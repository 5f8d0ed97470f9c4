"""What a fold over an epoch costs at one instance, after 50,000 instances of the epoch over after 1,000.

The look-back of `batches_do_not_repeat` and its like, without a job around it. Aim: a ratio of 1 for all folds but
`std`, which reads every value of its window.
"""

import time

from tspec.runtime.series.sliding import FOLDS, FoldSeries

EARLY, LATE, MORE = 1_000, 50_000, 1_000
SLOW = ("std",)
"""Measured at a tenth of the instances."""


def cost(series: FoldSeries, start: int, until: int, more: int) -> float:
    """Seconds of CPU for each of some instances, after others."""
    for value in range(start, until):
        series.take(0, value * 2.0**-20)
    began = time.process_time()
    for value in range(until, until + more):
        series.take(0, value * 2.0**-20)
    return (time.process_time() - began) / more


def main() -> None:
    """Print both costs and their ratio for every fold."""
    for name in sorted(FOLDS):
        share = 10 if name in SLOW else 1
        early, late, more = EARLY // share, LATE // share, MORE // share
        series = FoldSeries(name, 1, 1)
        at_first = cost(series, 0, early, more)
        at_last = cost(series, early + more, late, more)
        print(
            f"  {name:9} {at_first * 1e6:7.1f} µs at {early:,}  {at_last * 1e6:7.1f} µs at {late:,}"
            f"  ratio {at_last / at_first:.2f}"
        )


if __name__ == "__main__":
    main()
