#!/usr/bin/env python3
"""Tidemark's summaries and other projects' sketches side by side, on one core, in one run.

Every contender takes the same arrays. In each round all of them take the next slice of the input, one
after the other, the first one changing; a ratio is that of two contenders in one round, and a figure is
given as median (least-greatest) over the rounds. At the end their answers are held against the fully
sorted input: the error of an answer is the distance of its true ranks from phi * n, divided by n, the
largest over 9,999 phi; and no certificate may exclude the truth.

Prints Markdown. Exit status: 0; 1, a certificate was wrong; 2, usage; 77, the packages are missing.
"""
import argparse
import os
import pathlib
import sys

MISSING = 77
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True  # the source tree stays as it is


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidemark", metavar="LIBRARY", help="libtidemark_peers.so")
    parser.add_argument("--rivals", metavar="LIBRARY", help="librival_peers.so, if it was built")
    parser.add_argument("--venv", default="build/peers-venv", help="named in advice alone")
    parser.add_argument("--sections", default="quantiles,length,sliding,frequencies", help="of these")
    parser.add_argument("--inputs", default="all", help="for quantiles: names, comma-separated")
    parser.add_argument("--only", default="", help="contenders whose names hold one of these")
    parser.add_argument("--n", type=float, default=1e8, help="values of one input")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--wheel", choices=["auto", "all", "none"], default="auto",
                        help="sketches of the PyPI package; auto: those not built from sources, and KLL")
    parser.add_argument("--csv", metavar="FILE", help="append every figure to FILE")
    parser.add_argument("--report", metavar="FILE", help="only print the tables of such a FILE")
    parser.add_argument("--smoke", action="store_true", help="small: does it run")
    return parser.parse_args(arguments)


def advise(missing, venv):
    print(
        f"peers: python3 has no {' and no '.join(missing)}. For this comparison:\n"
        f"  python3 -m venv {venv} && {venv}/bin/pip install datasketches numpy",
        file=sys.stderr,
    )
    return MISSING


def contenders(options):
    from contenders import Library, wheel_rows

    rows = Library(options.tidemark, own=True).rows()
    if options.rivals:
        rows += Library(options.rivals, own=False).rows()
    if options.wheel != "none":
        built = {row.name for row in rows}
        for row in wheel_rows():
            plain = row.name.removesuffix(" (wheel)")
            if options.wheel == "all" or plain not in built or plain == "KLL k=2862":
                rows.append(row)
    words = [word for word in options.only.split(",") if word]
    return [row for row in rows if not words or any(word in row.name for word in words)]


def run(options):
    import measure
    import report
    from figures import Figures

    figures = Figures(options.csv)
    if options.report:
        figures.read(options.report)
        report.write(figures)
        return 0
    if options.smoke:
        options.n, options.rounds, options.inputs = 600_000, 2, "random,few distinct"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = contenders(options)
    print(report.machine())
    faults = 0
    sections = options.sections.split(",")
    if "quantiles" in sections:
        faults += measure.quantiles(options, rows, figures)
    if "length" in sections:
        measure.length(options, rows, figures)
    if "sliding" in sections:
        faults += measure.sliding(options, rows, figures)
    if "frequencies" in sections:
        faults += measure.frequencies(options, rows, figures)
    report.write(figures)
    if faults:
        print(f"peers: {faults} answers of Tidemark outside their certificates", file=sys.stderr)
    return 1 if faults else 0


def main(arguments):
    options = parse(arguments)
    missing = []
    for name in ["datasketches", "numpy"]:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    if missing:
        return advise(missing, options.venv)
    if not options.report and not options.tidemark:
        print("peers: --tidemark names the library to measure", file=sys.stderr)
        return 2
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
