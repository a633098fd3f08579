#!/usr/bin/env python3
"""Each rule of check_deploy.py must be able to fail."""
import unittest

import check_deploy

CONFIG = 'grpc = "h:1"\ntcp = "h:2"\nhttp = "h:3"\nstatsd = "h:4"\n'
DOCKERFILE = (
    "ENV TIDEMARK_GRPC=0.0.0.0:1 TIDEMARK_TCP=0.0.0.0:2 TIDEMARK_HTTP=0.0.0.0:3 "
    "TIDEMARK_STATSD=0.0.0.0:4\nEXPOSE 1 2 3 4 4/udp\n"
)
COMPOSE = "".join(f'- "127.0.0.1:{port}:{port}"\n' for port in [1, 2, 3, 4])


class CheckDeployTest(unittest.TestCase):
    def test_metrics(self):
        known = {"tidemark_a_total", "tidemark_b_seconds", *check_deploy.NOT_SHOWN}
        shown = check_deploy.used("rate(tidemark_a_total[1m]) / tidemark_b_seconds_bucket")
        self.assertEqual(list(check_deploy.check_metrics(known, shown)), [])
        for registered, extra in [
            (known - {"tidemark_a_total"}, set()),
            (known | {"tidemark_new"}, set()),
            (known, {"tidemark_statsd_lines_total"}),
            (known - {"tidemark_statsd_lines_total"}, set()),
        ]:
            faults = list(check_deploy.check_metrics(registered, shown | extra))
            self.assertEqual(len(faults), 1, faults)

    def test_dashboard(self):
        def panel(number, x, y):
            return {"id": number, "title": str(number), "gridPos": {"x": x, "y": y, "w": 8, "h": 8}}

        def faults(*panels):
            return list(check_deploy.check_dashboard({"panels": panels}))

        self.assertEqual(faults(panel(1, 0, 0), panel(2, 8, 0), panel(3, 0, 8)), [])
        self.assertEqual(len(faults(panel(1, 0, 0), panel(1, 8, 0))), 1)
        self.assertEqual(len(faults(panel(1, 0, 0), panel(2, 7, 7))), 1)

    def test_limits(self):
        rows = '| `limits.max_a` | no | `tidemark_a_total{reason="full"}` |\n| `limits.max_b`: x | `tidemark_a_*` |\n'

        def faults(operations=rows, config="[x]\nq = 1\n[limits]\nmax_a = 1\nmax_b = 2\n[y]\nz = 1\n",
                   registered=frozenset({"tidemark_a_total"}), declared="/// reasons: full, nan."):
            return list(check_deploy.check_limits(operations, config, registered, declared))

        self.assertEqual(faults(), [])
        self.assertEqual(len(faults(operations=rows.replace("max_b", "max_c"))), 2)
        self.assertEqual(len(faults(config="a = 1\n[limits]\nmax_a = 1\nmax_b = 2\nmax_c = 3\n")), 1)
        self.assertEqual(len(faults(registered=frozenset())), 1)
        self.assertEqual(len(faults(declared="/// reasons: nan, fuller.")), 1)

    def test_ports(self):
        def faults(config=CONFIG, dockerfile=DOCKERFILE, compose=COMPOSE, scrape='["tidemark:3"]'):
            return list(check_deploy.check_ports(config, dockerfile, compose, scrape))

        self.assertEqual(faults(), [])
        self.assertEqual(len(faults(config="grpc = 3")), 1)
        self.assertEqual(len(faults(dockerfile=DOCKERFILE.replace("4/udp", ""))), 1)
        self.assertEqual(len(faults(dockerfile=DOCKERFILE.replace("TCP=0.0.0.0", "TCP=127.0.0.1"))), 1)
        self.assertEqual(len(faults(compose=COMPOSE.replace("127.0.0.1:3", "3"))), 1)
        self.assertEqual(len(faults(scrape='["tidemark:9"]')), 1)


if __name__ == "__main__":
    unittest.main()
