"""The figures of a run: kept, appended to a CSV file, read back."""
import csv
import os
import statistics

FIELDS = "section input contender measure unit least median greatest n".split()


class Figures:
    def __init__(self, path=None):
        self.path = path
        self.rows = []

    def add(self, section, of_input, contender, measure, unit, values, n):
        values = [float(value) for value in values]
        row = dict(
            zip(
                FIELDS,
                [section, of_input, contender, measure, unit, min(values),
                 statistics.median(values), max(values), int(n)],
            )
        )
        self.rows.append(row)
        if self.path:
            new = not os.path.exists(self.path)
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS)
                if new:
                    writer.writeheader()
                writer.writerow(row)

    def read(self, path):
        """A later figure of the same thing replaces an earlier one."""
        latest = {}
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                for field in ["least", "median", "greatest"]:
                    row[field] = float(row[field])
                row["n"] = int(row["n"])
                latest[tuple(row[f] for f in ["section", "input", "contender", "measure"])] = row
        self.rows = list(latest.values())

    def of(self, section, measure):
        """{(contender, input): row}"""
        return {
            (row["contender"], row["input"]): row
            for row in self.rows
            if row["section"] == section and row["measure"] == measure
        }
