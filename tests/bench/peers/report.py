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
    """{contender: greatest of all inputs}"""
    found = {}
    for (contender, _), row in cells.items():
        found[contender] = max(found.get(contender, 0), row["greatest"])
    return found


def parts(cells, columns=6):
    """A table in pieces of so many columns."""
    inputs = ordered(key[1] for key in cells)
    for at in range(0, len(inputs), columns):
        some = inputs[at : at + columns]
        yield {key: row for key, row in cells.items() if key[1] in some}


def typical(cells, contender, text):
    """Of the first input, and in parentheses the greatest of all if that reads otherwise."""
    rows = [row for key, row in cells.items() if key[0] == contender]
    if not rows:
        return TICK
    first, most = text(rows[0]["median"]), text(max(row["median"] for row in rows))
    return first if first == most else f"{first} ({most})"


def whole(value):
    return f"{value:.0f}"


def microseconds(seconds):
    return three_digits(1e6 * seconds)


def ratios(figures, bases):
    """{(contender / base, input): row}"""
    return {
        (f"{contender} / {base}", of_input): row
        for base in bases
        for (contender, of_input), row in figures.of("quantiles", f"ratio to {base}").items()
    }


def errors_and_costs(figures):
    of = lambda measure: figures.of("quantiles", measure)  # noqa: E731
    overall, tail, proven = (worst(of(m)) for m in ["error", "error at p99", "proven"])
    if not overall:
        return
    columns = [("summary, most", whole), ("resident", whole), ("exported", whole),
               ("quantile", microseconds), ("quantile, fresh", microseconds),
               ("merge", microseconds)]
    print("\nErrors: the worst over all inputs that a contender was given. Costs: of the first input, in "
          "parentheses the most over all\n")
    print("| contender | measured, % of n | at φ ≥ 0.99 | proven | summary, bytes | with windows and "
          "scratch | exported | a quantile again, µs | the first after one more value, µs | "
          "merge, µs |")
    print("|---" * 10 + "|")
    for name in overall:
        bound = percent(proven[name]) if name in proven else TICK
        costs = " | ".join(typical(of(measure), name, text) for measure, text in columns)
        print(f"| {name} | {percent(overall[name])} | {percent(tail[name])} | {bound} | {costs} |")


def frequencies(figures):
    of = lambda measure: figures.of("frequencies", measure)  # noqa: E731
    rates = of("rate")
    if not rates:
        return
    print(f"\nFrequencies of Zipf(1.1) items, n = {next(iter(rates.values()))['n']:.3g}\n")
    print("| contender | million items/s | / frequent_items of like error | widest stated interval, % of "
          "n | summary, bytes | exported | heavy hitters of 1 %, µs | merge, µs |")
    print("|---" * 8 + "|")
    for key, rate in rates.items():
        base = [row for row in figures.rows
                if (row["contender"], row["input"]) == key and row["measure"].startswith("ratio to")]
        texts = [spread(rate, 1e-6), spread(base[0]) if base else TICK,
                 percent(of("stated")[key]["median"])]
        for measure, text in [("summary, most", whole), ("exported", whole),
                              ("heavy hitters", microseconds), ("merge", microseconds)]:
            row = of(measure).get(key)
            texts.append(text(row["median"]) if row else TICK)
        print(f"| {key[0]} | " + " | ".join(texts) + " |")


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
        print(f"n = {next(iter(rates.values()))['n']:.3g}; median (least–greatest) over the rounds")
    for part in parts(rates):
        grid("Million values/s", part, lambda row: spread(row, 1e-6))
    for bases in [["KLL k=268", "KLL k=2862", "KLL k=29000"], ["HdrHistogram 3 digits"]]:
        for part in parts(ratios(figures, bases)):
            grid("Ratios within a round", part, spread, "ratio")
    errors_and_costs(figures)
    grid("A call without values, ns", figures.of("calls", "call"), lambda row: spread(row, 1e9))
    grid("Cost of a value on the way from n/10 to n, ns", figures.of("length", "cost of a value"),
         lambda row: spread(row, 1e9))
    sliding(figures)
    frequencies(figures)
