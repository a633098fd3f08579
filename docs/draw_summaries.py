#!/usr/bin/env python3
"""Draws two pictures of docs/summaries.md and prints their examples, from a running service.

usage: draw_summaries.py --nab FOLDER --server HOST:PORT [--tidemark PROGRAM]

FOLDER holds series of the Numenta Anomaly Benchmark (they are no part of this project). The service
should hold no stream yet: start it for this with port 0 and a fresh configuration.
"""
import argparse
import bisect
import csv
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 44
GREY, BLUE, RED, PALE = "#6b7280", "#1d4ed8", "#b91c1c", "#dbeafe"


class Picture:
    """Lines, bars and words over two linear axes."""

    def __init__(self, x_range, y_range, x_name, y_name, numbered=True):
        self.x_range, self.y_range = x_range, y_range
        self.parts = []
        self.word(WIDTH / 2, HEIGHT - 8, x_name, "middle")
        self.word(4, 16, y_name)
        for value in self.ticks(x_range) if numbered else []:
            self.rule(self.x(value), HEIGHT - BOTTOM, self.x(value), HEIGHT - BOTTOM + 4)
            self.word(self.x(value), HEIGHT - BOTTOM + 17, f"{value:g}", "middle")
        for value in self.ticks(y_range):
            self.rule(LEFT - 4, self.y(value), LEFT, self.y(value))
            self.word(LEFT - 7, self.y(value) + 4, f"{value:g}", "end")
        self.rule(LEFT, TOP, LEFT, HEIGHT - BOTTOM)
        self.rule(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM)

    @staticmethod
    def ticks(of_range):
        low, high = of_range
        step = 10 ** (len(str(int(high - low))) - 1)
        while (high - low) / step < 4:
            step /= 2
        first = int(-(-low // step))
        return [i * step for i in range(first, int(high // step) + 1)]

    def x(self, value):
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def rule(self, x1, y1, x2, y2, colour=GREY, width=1, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{dashes}/>'
        )

    def word(self, x, y, text, anchor="start", colour="#111827"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'
        )

    def box(self, x1, y1, x2, y2, colour, opacity=1.0):
        """Between two points of the axes."""
        left, right = sorted([self.x(x1), self.x(x2)])
        top, bottom = sorted([self.y(y1), self.y(y2)])
        self.parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 1):.1f}" '
            f'height="{max(bottom - top, 1):.1f}" fill="{colour}" fill-opacity="{opacity}"/>'
        )

    def curve(self, points, colour=BLUE, width=2):
        text = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        )

    def dot(self, x, y, colour=RED):
        self.parts.append(
            f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="4" fill="{colour}"/>'
        )

    def save(self, name):
        (HERE / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="13">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n",
            encoding="utf-8",
        )


class Service:
    def __init__(self, options):
        self.command = [options.tidemark, "--server", options.server]
        self.nab = pathlib.Path(options.nab)

    def values(self, series):
        with open(self.nab / f"{series}.csv", newline="", encoding="utf-8") as file:
            return [float(row["value"]) for row in csv.DictReader(file)]

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], check=True, text=True, capture_output=True)
        return done.stdout

    def show(self, *arguments):
        print("$ tidemark " + " ".join(arguments) + "\n" + self.run(*arguments))

    def ask(self, *arguments):
        return json.loads(self.run("--json", *arguments))

    def push(self, stream, series, *options):
        self.run("create", stream, "--type", "float64", *options)
        self.run("push", stream, str(self.nab / f"{series}.csv"), "--column", "value")


def quantiles(service):
    series = "machine_temperature_system_failure"
    truth = sorted(service.values(series))
    service.push("machine", series, "--epsilon", "0.01")
    service.show("quantile", "machine", "0", "0.01", "0.5", "0.99", "1")
    answer = service.ask("quantile", "machine", "0.01")["answers"][0]
    n, target = len(truth), -(-len(truth) // 100)
    most = 700
    picture = Picture((0, 50), (0, most), "temperature", "rank: how many values come no later")
    slack = n // 100
    picture.box(0, max(target - slack, 0), 50, target + slack, PALE, 0.7)
    picture.word(picture.x(0.5), picture.y(target + slack) + 16,
                 f"target ± εn: {target} ± {slack}", colour=GREY)
    picture.box(0, answer["rank_low"], 50, answer["rank_high"], BLUE, 0.35)
    picture.word(picture.x(0.5), picture.y(answer["rank_high"]) - 6,
                 f"certificate [{answer['rank_low']}, {answer['rank_high']}]", colour=BLUE)
    points = [(value, rank) for rank, value in enumerate(truth[:most], 1)]
    picture.curve(points, "#111827")
    value = answer["value"]
    rank = bisect.bisect_right(truth, value)
    picture.rule(picture.x(value), picture.y(0), picture.x(value), picture.y(rank), RED, 1, "4 3")
    picture.dot(value, rank)
    picture.word(picture.x(value) + 8, picture.y(rank) + 18,
                 f"answer {value:.2f}, true rank {rank}", colour=RED)
    picture.save("summary-quantile.svg")


def frequencies(service):
    series = "Twitter_volume_AAPL"
    values = service.values(series)
    service.push("tweets", series, "--frequency-epsilon", "0.005")
    service.show("top", "tweets", "--support", "0.015")
    asked = ["29", "40", "50", "60", "70", "80", "90", "104", "120", "150", "200", "5000"]
    service.show("count", "tweets", "29", "104", "5000")
    items = service.ask("count", "tweets", *asked)["items"]
    picture = Picture((0, len(items)), (0, 300), "item: tweets in five minutes",
                      "count: [low, high] shaded, the truth a dot", numbered=False)
    for at, item in enumerate(items):
        picture.box(at + 0.2, 0, at + 0.8, item["count_low"], PALE)
        picture.box(at + 0.2, item["count_low"], at + 0.8, item["count_high"], BLUE, 0.35)
        picture.dot(at + 0.5, values.count(float(item["value"])))
        picture.word(picture.x(at + 0.5), picture.y(0) + 17, f"{float(item['value']):g}", "middle")
    picture.save("summary-frequency.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nab", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--tidemark", default="build/bin/tidemark")
    service = Service(parser.parse_args())
    quantiles(service)
    frequencies(service)


if __name__ == "__main__":
    main()
