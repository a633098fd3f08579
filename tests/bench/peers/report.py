"""Markdown tables of the figures."""
import platform

TICK = "–"


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, one core, Linux {platform.release()}, Python {platform.python_version()}\n"


def ordered(keys):
    return list(dict.fromkeys(keys))


def three_digits(value):
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(row, scale=1.0):
    least, median, greatest = (scale * row[f] for f in ["least", "median", "greatest"])
    if least == greatest:
        return three_digits(median)
    return f"{three_digits(median)} ({three_digits(least)}–{three_digits(greatest)})"


def percent(share):
    return f"{100 * share:.4f}" if share < 1e-4 else f"{100 * share:.3f}"


def grid(title, cells, text, corner="contender"):
    """One row for each contender, one column for each input."""
    if not cells:
        return
    contenders = ordered(key[0] for key in cells)
    columns = ordered(key[1] for key in cells)
    print(f"\n{title}\n")
    print(f"| {corner} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for contender in contenders:
        found = [cells.get((contender, column)) for column in columns]
        print(f"| {contender} | " + " | ".join(text(c) if c else TICK for c in found) + " |")


def beside(one, other):
    """Two tables in one: {key: (row, row)} of what both have."""
    return {key: (one[key], other[key]) for key in one if key in other}


def worst(cells):
    """{contender: (greatest of all inputs, the input)}"""
    found = {}
    for (contender, of_input), row in cells.items():
        if contender not in found or row["greatest"] > found[contender][0]:
            found[contender] = (row["greatest"], of_input)
    return found


def errors(figures):
    overall, tail = figures.of("quantiles", "error"), figures.of("quantiles", "error at p99")
    proven = figures.of("quantiles", "proven")
    grid("Measured error, % of n: over all φ / at φ ≥ 0.99", beside(overall, tail),
         lambda two: f"{percent(two[0]['median'])} / {percent(two[1]['median'])}")
    grid("Proven error, % of n: the widest certificate", proven,
         lambda row: percent(row["median"]))
    if overall:
        print("\nWorst over all inputs, % of n\n")
        print("| contender | measured | in | measured at φ ≥ 0.99 | in | proven |\n|---|---|---|---|---|---|")
        w, t, p = worst(overall), worst(tail), worst(proven)
        for name in w:
            bound = percent(p[name][0]) if name in p else "–"
            print(f"| {name} | {percent(w[name][0])} | {w[name][1]} | {percent(t[name][0])} | "
                  f"{t[name][1]} | {bound} |")


def costs(figures):
    def scaled(scale):
        return lambda row: three_digits(scale * row["median"])

    def whole(row):
        return f"{row['median']:.0f}"

    grid("Resident bytes, windows and scratch included (what the heap gets back)",
         figures.of("quantiles", "resident"), whole)
    grid("Bytes of the summary alone, at the end / at most",
         beside(figures.of("quantiles", "summary"), figures.of("quantiles", "summary, most")),
         lambda two: f"{two[0]['median']:.0f} / {two[1]['median']:.0f}")
    grid("Exported bytes", figures.of("quantiles", "exported"), whole)
    grid("One quantile, µs: asked again / the first after one more value",
         beside(figures.of("quantiles", "quantile"), figures.of("quantiles", "quantile, fresh")),
         lambda two: " / ".join(three_digits(1e6 * row["median"]) for row in two))
    grid("Merge of two such, µs", figures.of("quantiles", "merge"), scaled(1e6))
    grid("A call without values, ns", figures.of("calls", "call"), scaled(1e9))


def frequencies(figures):
    of = lambda measure: figures.of("frequencies", measure)  # noqa: E731
    grid("Frequencies: million items/s", of("rate"), lambda row: spread(row, 1e-6))
    for lg in ["lg=12", "lg=15"]:
        for value in ["u32", "u64"]:
            base = f"frequent_items {lg}, {value}"
            grid(f"Times the rate of {base}", of(f"ratio to {base}"), spread)
    grid("Widest stated interval of a count, % of n", of("stated"),
         lambda row: percent(row["median"]))
    for measure in ["summary", "summary, most", "resident", "exported"]:
        grid(f"Bytes: {measure}", of(measure), lambda row: f"{row['median']:.0f}")
    grid("Heavy hitters of 1 %, µs", of("heavy hitters"), lambda row: spread(row, 1e6))
    grid("Merge of two such, µs", of("merge"), lambda row: spread(row, 1e6))


def sliding(figures):
    of = lambda measure: figures.of("sliding", measure)  # noqa: E731
    grid("Sliding windows beside plain sketches: million values/s", of("rate"),
         lambda row: spread(row, 1e-6))
    for base in ["KLL k=268", "KLL k=2862"]:
        grid(f"Sliding windows: times the plain rate of {base}", of(f"ratio to {base}"), spread)
    grid("Sliding windows: error, % of the window, measured / proven, the worst round",
         beside(of("error"), of("proven")),
         lambda two: f"{percent(two[0]['greatest'])} / {percent(two[1]['greatest'])}")
    grid("Sliding windows: bytes of the summary, at the end / at most",
         beside(of("summary"), of("summary, most")),
         lambda two: f"{two[0]['median']:.0f} / {two[1]['median']:.0f}")
    grid("Sliding windows: one quantile, µs: asked again / the first after one more value",
         beside(of("quantile"), of("quantile, fresh")),
         lambda two: " / ".join(three_digits(1e6 * row["median"]) for row in two))


def write(figures):
    rates = figures.of("quantiles", "rate")
    if rates:
        print(f"n = {next(iter(rates.values()))['n']:.3g}")
    grid("Million values/s", rates, lambda row: spread(row, 1e-6))
    for base in ["KLL k=268", "KLL k=2862", "KLL k=29000", "HdrHistogram 3 digits"]:
        grid(f"Times the rate of {base}", figures.of("quantiles", f"ratio to {base}"), spread)
    errors(figures)
    costs(figures)
    grid("Cost of a value on the way from n/10 to n, ns", figures.of("length", "cost of a value"),
         lambda row: spread(row, 1e9))
    sliding(figures)
    frequencies(figures)
