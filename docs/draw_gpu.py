#!/usr/bin/env python3
"""Draws what gpu_bench and vendor_sort.py measured, from their CSV.

usage: draw_gpu.py CSV... [--out FOLDER]

Writes, as far as the rows go: gpu-comparisons.svg and gpu-bytes.svg (what each sorter does for a key:
the same on every device), gpu-sorters-32.svg and -64.svg (time over the size), gpu-tiles.svg,
gpu-abisort.svg, gpu-reduction.svg, gpu-blocks.svg. Rows of a later run replace equal ones of an earlier. The title says
which device it was, and whether it was a software rasteriser.
"""
import argparse
import csv
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 200, 46, 44
GREY, BLACK = "#6b7280", "#111827"
COLOURS = ["#1d4ed8", "#b91c1c", "#047857", "#b45309", "#7c3aed", "#0e7490", "#be185d", "#4d7c0f",
           "#64748b", "#000000"]


class Picture:
    """Curves over two logarithmic axes, with their names at the right."""

    def __init__(self, title, x_name, y_name, curves):
        points = [point for _, _, curve in curves for point in curve]
        self.x_range = self.reach([x for x, _ in points], 2)
        self.y_range = self.reach([y for _, y in points], 10)
        self.parts = []
        self.word(4, 18, title, size=14)
        self.word(4, TOP - 10, y_name)
        self.word((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name, "middle")
        self.axes()
        for at, (name, dashed, curve) in enumerate(curves):
            self.curve(name, dashed, curve, COLOURS[at % len(COLOURS)], TOP + 8 + 17 * at)

    @staticmethod
    def reach(values, base):
        low = math.floor(math.log(min(values), base) + 1e-9)
        high = math.ceil(math.log(max(values), base) - 1e-9)
        return base, low, max(high, low + 1)

    def x(self, value):
        base, low, high = self.x_range
        return LEFT + (math.log(value, base) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        base, low, high = self.y_range
        share = (math.log(value, base) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        base, low, high = self.x_range
        for power in range(low, high + 1, max(1, math.ceil((high - low) / 8))):
            x = self.x(base**power)
            self.rule(x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4)
            self.word(x, HEIGHT - BOTTOM + 17, f"2^{power}" if high > 11 else f"{base**power}", "middle")
        base, low, high = self.y_range
        for power in range(low, high + 1):
            y = self.y(base**power)
            self.rule(LEFT - 4, y, WIDTH - RIGHT, y, "#e5e7eb")
            self.word(LEFT - 7, y + 4, f"{float(base)**power:g}", "end")
        self.rule(LEFT, TOP, LEFT, HEIGHT - BOTTOM)
        self.rule(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM)

    def rule(self, x1, y1, x2, y2, colour=GREY, width=1, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{dashes}/>'
        )

    def word(self, x, y, text, anchor="start", colour=BLACK, size=12):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}">{text}</text>'
        )

    def curve(self, name, dashed, curve, colour, at):
        text = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in curve)
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.parts.append(
            f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        )
        for x, y in curve:
            self.parts.append(
                f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="2.5" fill="{colour}"/>'
            )
        left = WIDTH - RIGHT + 10
        self.rule(left, at - 4, left + 20, at - 4, colour, 2, "5 3" if dashed else "")
        self.word(left + 25, at, name)

    def save(self, file):
        file.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n",
            encoding="utf-8",
        )
        print(file)


def read(files):
    """Rows by section; those that were not measured are left out."""
    rows = {}
    for name in files:
        with open(name, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["result"] == "ok":
                    key = tuple(row[k] for k in ("section", "subject", "form", "parameter", "key_bits",
                                                 "payload_bits", "log2_keys"))
                    rows[key] = row
    return list(rows.values())


def number(row, column):
    return float(row[column]) if row[column] else 0.0


def curves(rows, x, y, name, dashed=lambda row: False):
    """A curve for each name, of the points that both functions of a row give."""
    found = {}
    for row in rows:
        if y(row) > 0:
            found.setdefault(name(row), (dashed(row), {}))[1][x(row)] = y(row)
    return [(key, dash, sorted(points.items())) for key, (dash, points) in found.items()]


def where(rows):
    rows = [row for row in rows if row["device"]]
    if not rows:
        return "no GL"
    last = rows[-1]
    note = "software rasteriser, no measure of a GPU: " if last["software"] == "1" else ""
    return f"{note}{last['device'].split(',')[0].split(' (')[0]}, {last['date'][:10]}"


def size(row):
    return 2 ** int(row["log2_keys"])


def label(row):
    return f"{row['subject']}, {row['form']}" if row["form"] else row["subject"]


def per_key(column):
    return lambda row: number(row, column) / (int(row["windows"]) * size(row))


def draw(folder, name, title, x_name, y_name, found):
    if any(len(curve) > 1 for _, _, curve in found):
        Picture(title, x_name, y_name, found).save(folder / name)


def draw_sorters(folder, rows):
    of = [row for row in rows if row["section"] in ("sorters", "vendor")]
    for bits in ("32", "64"):
        alone = [r for r in of if r["key_bits"] == bits
                 and (r["payload_bits"] == "0" or r["section"] == "vendor")]
        found = curves(alone, size, lambda r: number(r, "ms_median"), label)
        found += curves([r for r in alone if r["software"] == "0"], size,
                        lambda r: number(r, "device_ms_median"),
                        lambda r: f"{label(r)}: device", lambda r: True)
        draw(folder, f"gpu-sorters-{bits}.svg", f"Four windows of {bits}-bit keys. {where(alone)}",
             "keys in a window", "ms for a request, end to end (dashed: device alone)", found)


def draw_counts(folder, rows):
    of = [row for row in rows if row["section"] == "counts" and row["comparisons"] not in ("", "0")
          and row["form"] not in ("stages one by one", "sorted halves merged")]
    for name, column, title in (
        ("gpu-comparisons.svg", "comparisons", "Comparisons a key: exact, on every device"),
        ("gpu-bytes.svg", "device_bytes",
         "Bytes that the passes read and write for a key of 32 bits: exact, on every device"),
    ):
        draw(folder, name, title, "keys in a window", "", curves(of, size, per_key(column), label))


def draw_sweeps(folder, rows):
    tiles = [row for row in rows if row["section"] == "tiles" and row["parameter"]
             and row["parameter"] != "0" and "call" not in row["form"]]
    draw(folder, "gpu-tiles.svg", f"Tiles of gl-bitonic. {where(tiles)}", "edge of a tile, texels",
         "ms on the device",
         curves(tiles, lambda r: int(r["parameter"]), lambda r: number(r, "device_ms_median"),
                lambda r: f"4 × 2^{r['log2_keys']} keys"))
    abisort = [row for row in rows if row["section"] == "abisort"]
    draw(folder, "gpu-abisort.svg", f"Adaptive and plain bitonic sorting. {where(abisort)}",
         "keys in a window", "ms for a request, end to end",
         curves(abisort, size, lambda r: number(r, "ms_median"), label))
    reduction = [row for row in rows if row["section"] == "reduction"]
    draw(folder, "gpu-reduction.svg", f"Runs of four sorted windows, 60 % of the keys end one. "
         f"{where(reduction)}", "keys in a window", "ms, read-back included",
         curves([r for r in reduction if not r["parameter"]], size,
                lambda r: number(r, "ms_median"), label))
    blocks = [row for row in reduction if row["parameter"].isdigit()]
    found = curves([r for r in blocks if "step" not in r["subject"]],
                   lambda r: int(r["parameter"]), lambda r: number(r, "device_ms_median"),
                   lambda r: "all on the device")
    found += curves([r for r in blocks if "step" in r["subject"]], lambda r: int(r["parameter"]),
                    lambda r: number(r, "ms_median"), lambda r: r["form"], lambda r: True)
    draw(folder, "gpu-blocks.svg", f"Reduction by blocks. {where(blocks)}", "elements in a block",
         "ms", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", nargs="+")
    parser.add_argument("--out", default=HERE, type=pathlib.Path)
    options = parser.parse_args()
    rows = read(options.csv)
    if not rows:
        sys.exit("draw_gpu.py: no measured row in " + ", ".join(options.csv))
    options.out.mkdir(parents=True, exist_ok=True)
    draw_counts(options.out, rows)
    draw_sorters(options.out, rows)
    draw_sweeps(options.out, rows)


if __name__ == "__main__":
    main()
