"""The measurements themselves: what compare.py's comment describes."""
import gc
import statistics
import sys

import inputs
import numpy as np
from contenders import DTYPES, NO_BOUND, call_seconds, heap_bytes, thread_seconds

PHIS = 9_999
WINDOW = 1 << 18  # of tidemark_peers.cc
KLL = {0.01: "KLL k=268", 0.001: "KLL k=2862", 1e-4: "KLL k=29000"}
LAST = 1_000_000  # values in a sliding window, as in the names of tidemark_peers.cc
SLIDING_INPUTS = ["random", "sorted", "reversed", "lognormal", "zoom in", "sawtooth", "drifting"]
# HdrHistogram takes whole numbers of a fixed range; these inputs leave any that it has.
NOT_FOR_HDR = {"very wide", "outliers"}


def progress(text):
    print(text, file=sys.stderr, flush=True)


def rounds_of(rows, values, rounds, check=lambda until, peers: 0):
    """Feeds everyone slice by slice; {name: [values/s of each round]}, the peers, and the sum of what
    check(values so far, peers) found after each round."""
    found = 0
    peers = {row.name: row.make() for row in rows}
    rates = {row.name: [] for row in rows}
    borders = np.linspace(0, values.size, rounds + 1).astype(int)
    for turn in range(rounds):
        part = values[borders[turn] : borders[turn + 1]]
        for at in range(len(rows)):
            name = rows[(at + turn) % len(rows)].name
            start = thread_seconds()
            peers[name].add(part)
            rates[name].append(part.size / (thread_seconds() - start))
        found += check(borders[turn + 1], peers)
    return rates, peers, found


def faster(rates, plain):
    """Of a sketch that is there twice, from sources and in the wheel, the faster one."""
    names = [name for name in (plain, plain + " (wheel)") if name in rates]
    return max(names, key=lambda name: statistics.median(rates[name]), default=None)


def add_ratios(figures, section, of_input, rows, rates, base_of, n):
    for row in rows:
        base = faster(rates, base_of(row)) if row.own and base_of(row) else None
        if base:
            ratios = [a / b for a, b in zip(rates[row.name], rates[base])]
            figures.add(section, of_input, row.name, f"ratio to {base_of(row)}", "", ratios, n)


def free_and_weigh(peer):
    """Heap bytes that the peer gives back."""
    gc.collect()
    before = heap_bytes()
    peer.free()
    gc.collect()
    return None if before is None else before - heap_bytes()


class Truth:
    def __init__(self, values):
        self.sorted = np.sort(values)
        self.n = values.size
        self.phis = np.arange(1, PHIS + 1) / (PHIS + 1)
        self.targets = -(-np.arange(1, PHIS + 1) * self.n // (PHIS + 1))

    def ranks(self, answers):
        """First and last position that each answer takes, or could take, in sorted order."""
        less = np.searchsorted(self.sorted, answers, "left")
        at_most = np.searchsorted(self.sorted, answers, "right")
        return less + 1, np.maximum(at_most, less)

    def errors(self, answers):
        first, last = self.ranks(answers)
        off = np.maximum(np.maximum(first - self.targets, self.targets - last), 0)
        return off.max() / self.n, off[self.phis >= 0.99].max() / self.n

    def certificate(self, answers, low, high):
        """How wide the certificates are, and how many are wrong."""
        first, last = self.ranks(answers)
        low, high = low.astype(np.int64), high.astype(np.int64)
        nearest = np.clip(self.targets, first, np.maximum(last, first))
        wrong = (low > nearest) | (high < nearest) | (first > last)
        width = np.maximum(self.targets - low, high - self.targets).max()
        return width / self.n, int(wrong.sum())


def check_answers(figures, of_input, row, peer, truth):
    answers, low, high = peer.quantiles(truth.phis)
    overall, tail = truth.errors(answers)
    figures.add("quantiles", of_input, row.name, "error", "of n", [overall], truth.n)
    figures.add("quantiles", of_input, row.name, "error at p99", "of n", [tail], truth.n)
    if low[0] == NO_BOUND:
        return 0
    width, wrong = truth.certificate(answers, low, high)
    figures.add("quantiles", of_input, row.name, "proven", "of n", [width], truth.n)
    return wrong


def costs(figures, of_input, row, peer, value, n):
    """Bytes, answers, merges: of the peer as it stands."""
    held, most, window, exported = peer.bytes()
    for measure, size in [("summary", held), ("summary, most", most), ("windows", window),
                          ("exported", exported)]:
        if size:
            figures.add("quantiles", of_input, row.name, measure, "bytes", [size], n)
    repeats = 20 if n > 1_000_000 else 2
    again = [peer.quantile_seconds(phi, None, repeats) for phi in (0.1, 0.5, 0.99)]
    fresh = [peer.quantile_seconds(phi, value, repeats) for phi in (0.1, 0.5, 0.99)]
    merges = [peer.merge_seconds(peer, max(2, repeats // 4)) for _ in range(3)]
    for measure, seconds in [("quantile", again), ("quantile, fresh", fresh), ("merge", merges)]:
        figures.add("quantiles", of_input, row.name, measure, "s", seconds, n)


def quantiles(options, rows, figures):
    rows = [row for row in rows if row.kind == "quantile"]
    for row in rows:
        figures.add("calls", "", row.name, "call", "s", [call_seconds(row)], 0)
    names = list(inputs.INPUTS) if options.inputs == "all" else options.inputs.split(",")
    n, faults = int(options.n), 0
    for name in names:
        progress(f"{name}: {n} values")
        values = inputs.make(name, n)
        entered = [row for row in rows if not (name in NOT_FOR_HDR and "Hdr" in row.name)]
        rates, peers, _ = rounds_of(entered, values, options.rounds)
        for row in entered:
            figures.add("quantiles", name, row.name, "rate", "values/s", rates[row.name], n)
        add_ratios(figures, "quantiles", name, entered, rates,
                   lambda row: KLL.get(row.epsilon), n)
        add_ratios(figures, "quantiles", name, entered, rates,
                   lambda row: "HdrHistogram 3 digits", n)
        truth = Truth(values)
        for row in entered:
            peer = peers[row.name]
            wrong = check_answers(figures, name, row, peer, truth)
            if wrong:
                progress(f"{row.name}, {name}: {wrong} wrong certificates")
            faults += wrong
            costs(figures, name, row, peer, values[:1].copy(), n)
            weight = free_and_weigh(peer)
            if weight is not None:
                figures.add("quantiles", name, row.name, "resident", "bytes", [weight], n)
    return faults


def length(options, rows, figures):
    """What one more value costs the longer the stream is. The input is repeated, in whole windows:
    values of an open one have not been paid for yet."""
    rows = [row for row in rows if row.kind == "quantile" and row.own]
    part = inputs.make("random", 1 << (12 if options.smoke else 22))
    last = 6 if options.smoke else 10
    for row in rows:
        progress(f"length: {row.name}")
        costs_at = {}
        for turn in range(options.rounds):
            peer, n = row.make(), 0
            # The longest ones are measured once: they average over minutes as it is.
            top = last if turn == 0 else min(8, last)
            for exponent in range(6, top + 1):
                start, before, until = thread_seconds(), n, -(-(10**exponent) // WINDOW) * WINDOW
                while n < until:
                    take = part[: min(part.size, until - n)]
                    peer.add(take)
                    n += take.size
                costs_at.setdefault(exponent, []).append((thread_seconds() - start) / (n - before))
            peer.free()
        for exponent, seconds in costs_at.items():
            figures.add("length", f"10^{exponent}", row.name, "cost of a value", "s", seconds,
                        10**exponent)


def sliding(options, rows, figures):
    """Windows of the last LAST values against the plain rate of KLL, which has no windows. Answers are
    checked after every round."""
    windows = [row for row in rows if row.kind == "sliding"]
    plain = {KLL[row.epsilon] for row in windows}
    base = [row for row in rows if row.name.removesuffix(" (wheel)") in plain]
    rows = windows + base
    if len(rows) == len(base):
        return 0
    names = SLIDING_INPUTS if options.inputs == "all" else options.inputs.split(",")
    n, faults = int(options.n), 0
    for name in names:
        progress(f"sliding, {name}: {n} values")
        values = inputs.make(name, n)
        seen = {row.name: {"error": [], "proven": []} for row in rows if row.own}

        def check(until, peers):
            wrong = 0
            truth = Truth(values[max(0, until - LAST) : until])
            for row in rows:
                if row.own:
                    answers, low, high = peers[row.name].quantiles(truth.phis)
                    width, outside = truth.certificate(answers, low, high)
                    seen[row.name]["error"].append(truth.errors(answers)[0])
                    seen[row.name]["proven"].append(width)
                    wrong += outside
            return wrong

        rates, peers, wrong = rounds_of(rows, values, options.rounds, check)
        faults += wrong
        add_ratios(figures, "sliding", name, rows, rates, lambda row: KLL.get(row.epsilon), n)
        for row in rows:
            peer = peers[row.name]
            figures.add("sliding", name, row.name, "rate", "values/s", rates[row.name], n)
            if row.own:
                for measure, of in seen[row.name].items():
                    figures.add("sliding", name, row.name, measure, "of the window", of, n)
                again = [peer.quantile_seconds(phi, None, 20) for phi in (0.1, 0.5, 0.99)]
                fresh = [peer.quantile_seconds(phi, values[:1].copy(), 20) for phi in (0.1, 0.5, 0.99)]
                figures.add("sliding", name, row.name, "quantile", "s", again, n)
                figures.add("sliding", name, row.name, "quantile, fresh", "s", fresh, n)
                for measure, size in zip(["summary", "summary, most", "windows", "exported"],
                                         peer.bytes()):
                    figures.add("sliding", name, row.name, measure, "bytes", [size], n)
            peer.free()
    return faults


def count_errors(row, peer, items, truth, n):
    """The widest stated interval, and how many are wrong, of the most frequent items."""
    low, high = peer.counts(items)
    wrong = int(((low > truth) | (high < truth)).sum())
    return (high - low).max() / n, wrong


def frequencies(options, rows, figures):
    rows = [row for row in rows if row.kind == "frequency"]
    n, faults = int(options.n) // 2, 0
    base = {1e-3: "lg=12", 1e-4: "lg=15"}
    for value in ["u32", "u64"]:
        entered = [row for row in rows if row.value == value]
        if not entered:
            continue
        progress(f"frequencies, {value}: {n} items")
        items = inputs.zipf(n, DTYPES[value])
        rates, peers, _ = rounds_of(entered, items, options.rounds)
        found, counts = np.unique(items, return_counts=True)
        heaviest = np.argsort(counts)[-20_000:]
        found, counts = found[heaviest].copy(), counts[heaviest].astype(np.uint64)
        name = f"Zipf(1.1), {value}"
        add_ratios(figures, "frequencies", name, entered, rates,
                   lambda row: f"frequent_items {base.get(row.epsilon)}, {row.value}", n)
        for row in entered:
            peer = peers[row.name]
            width, wrong = count_errors(row, peer, found, counts, n)
            faults += wrong if row.own else 0
            held, most, window, exported = peer.bytes()
            seconds = peer.heavy_hitters_seconds(0.01, 20)
            merge = peer.merge_seconds(peer, 3)
            add = lambda measure, unit, of: figures.add(  # noqa: E731
                "frequencies", name, row.name, measure, unit, of, n)
            add("rate", "items/s", rates[row.name])
            add("stated", "of n", [width])
            add("wrong", "items", [wrong])
            for measure, size in [("summary", held), ("summary, most", most), ("windows", window),
                                  ("exported", exported)]:
                if size:
                    add(measure, "bytes", [size])
            add("heavy hitters", "s", [seconds])
            add("merge", "s", [merge])
            weight = free_and_weigh(peer)
            if weight is not None:
                add("resident", "bytes", [weight])
    return faults
