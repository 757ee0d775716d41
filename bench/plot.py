"""Plots the JSON output of `tambour-bench growth --json-out FILE`.

    python bench/plot.py FILE OUT.svg

Lines that must be flat have an axis from zero, so that the scale cannot hide a slope.
"""

import json
import statistics
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402


def main(source: str, target: str) -> None:
    with open(source, encoding="utf-8") as file:
        series = json.load(file)
    figure, axes = pyplot.subplots(
        (len(series) + 1) // 2, 2, figsize=(10, 3.5 * ((len(series) + 1) // 2)), layout="constrained"
    )
    for axis in axes.flat[len(series) :]:
        axis.set_visible(False)
    for axis, line in zip(axes.flat, series):
        sizes = [max(point["size"], 1) for point in line["points"]]
        middles = [statistics.median(point["values"]) for point in line["points"]]
        least = [middle - min(point["values"]) for middle, point in zip(middles, line["points"])]
        most = [max(point["values"]) - middle for middle, point in zip(middles, line["points"])]
        axis.errorbar(sizes, middles, yerr=[least, most], marker="o", capsize=3)
        axis.set_xscale("log")
        axis.set_ylim(0, 1.3 * max(middle + more for middle, more in zip(middles, most)))
        axis.set_title(line["title"], fontsize=10)
        axis.set_xlabel(line["over"])
        axis.set_ylabel(line["unit"])
        axis.grid(alpha=0.3)
    figure.savefig(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
