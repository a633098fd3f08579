#!/usr/bin/env python3
"""Checks that deploy/ and the Dockerfile speak of what exists, and prints one line for each fault.

Rules:
  metrics    Every tidemark_ metric named by an alert or the dashboard is registered in
             server/telemetry/metrics.cc, and every registered one is shown or alerted on, or listed
             below with its reason.
  dashboard  Panels have their own ids and do not overlap.
  limits     docs/operations.md names metrics and reasons that exist, and its table of limits has a row
             for every setting of [limits] in deploy/tidemark.toml.
  ports      Dockerfile, compose file and scrape configuration use the ports of deploy/tidemark.toml.

usage: check_deploy.py ROOT        exit status 0: no fault, 1: faults, 2: usage
"""
import itertools
import json
import pathlib
import re
import sys

METRIC = re.compile(r"\btidemark_[a-z][a-z0-9_]*")
# Counted for looking into a fault that another metric shows first.
NOT_SHOWN = {
    "tidemark_ingest_batches_total": "values say more; batches are for their mean size",
    "tidemark_ingest_duplicates_total": "ordinary: a connection was cut, and nothing is wrong",
    "tidemark_log_pending_bytes": "at its limit batches are refused, which is shown",
    "tidemark_log_segments": "the folder's size says more",
    "tidemark_log_bytes_total": "for sizing a disk",
    "tidemark_log_syncs_total": "for setting store.sync_interval_us",
    "tidemark_snapshot_timestamp_seconds": "failures are shown",
    "tidemark_snapshot_seconds": "for setting store.snapshot_interval_s",
    "tidemark_snapshot_bytes": "for sizing a disk",
    "tidemark_memory_limit_bytes": "streams refused at it are shown",
    "tidemark_streams_expired_total": "as configured: nothing is wrong",
    "tidemark_sort_routes_total": "for looking into the choice of a sorter; its times are shown",
    "tidemark_sort_observed_keys_per_second": "the same",
    "tidemark_named_subscriptions": "as users made them; refusals at the limit are shown",
    "tidemark_producers": "of no interest before some are forgotten",
    "tidemark_producers_forgotten_total": "those that come back are refused, which is shown",
    "tidemark_peers": "what is refused of them is shown",
    "tidemark_grpc_handshakes_delayed_total": "a crowd; its connections are shown",
    "tidemark_grpc_connections_unopened_total": "probes of ports; failed handshakes of TLS are shown",
    "tidemark_ingest_connections_refused_total": "seen from its senders",
    "tidemark_ingest_connections_idle_closed_total": "ordinary",
    "tidemark_statsd_lines_total": "kinds of lines, for setting up a sender",
    "tidemark_statsd_fields_ignored_total": "for setting up a sender",
    "tidemark_http_requests_total": "scrapes themselves",
    "tidemark_windows_sorted_total": "keys sorted say more",
    "tidemark_window_fill_keys": "for tuning window.max_capacity",
}


def used(text):
    """Metric names as registered: a histogram's series lose their suffix."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in METRIC.findall(text)}


def check_metrics(registered, shown):
    for name in sorted(shown - registered):
        yield f"{name} is shown or alerted on, but the daemon has no such metric"
    for name in sorted(registered - shown - set(NOT_SHOWN)):
        yield f"{name} is neither shown nor alerted on; if that is meant, say so in check_deploy.py"
    for name in sorted(set(NOT_SHOWN) & shown | set(NOT_SHOWN) - registered):
        yield f"{name}: NOT_SHOWN in check_deploy.py is out of date"


def check_dashboard(dashboard):
    panels = dashboard["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        yield "the dashboard has two panels with one id"
    for a, b in itertools.combinations(panels, 2):
        p, q = a["gridPos"], b["gridPos"]
        if (p["x"] < q["x"] + q["w"] and q["x"] < p["x"] + p["w"]
                and p["y"] < q["y"] + q["h"] and q["y"] < p["y"] + p["h"]):
            yield f"the panels \"{a['title']}\" and \"{b['title']}\" overlap"


def check_limits(operations, config, registered, declared):
    """`declared` is server/telemetry/metrics.h, whose comments list the reasons."""
    # A name that ends in "_" stands for several: `tidemark_ingest_*`.
    for name in sorted(name for name in used(operations) - registered if not name.endswith("_")):
        yield f"docs/operations.md names {name}, but the daemon has no such metric"
    for reason in sorted(set(re.findall(r'reason="([a-z_0-9]+)"', operations))):
        if not re.search(rf"\b{reason}\b", declared):
            yield f"docs/operations.md names the reason {reason}, which metrics.h does not list"
    limits = config.partition("\n[limits]\n")[2].partition("\n[")[0]
    rows = set(re.findall(r"^\| `limits\.([a-z_0-9]+)`", operations, re.MULTILINE))
    settings = set(re.findall(r"^([a-z_0-9]+) =", limits, re.MULTILINE))
    for name in sorted(settings ^ rows):
        yield f"docs/operations.md and deploy/tidemark.toml differ on the limit limits.{name}"


def check_ports(config, dockerfile, compose, scrape):
    listen = dict(re.findall(r'^(grpc|tcp|http|statsd) = "[^"]*:(\d+)"', config, re.MULTILINE))
    if set(listen) != {"grpc", "tcp", "http", "statsd"}:
        yield "deploy/tidemark.toml does not name the four ports"
        return
    exposed = re.search(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)
    if not exposed or set(exposed.group(1).split()) != {*listen.values(), listen["statsd"] + "/udp"}:
        yield f"Dockerfile: EXPOSE differs from the ports {sorted(listen.values())}"
    for name, port in listen.items():
        if f"TIDEMARK_{name.upper()}=0.0.0.0:{port}" not in dockerfile:
            yield f"Dockerfile: TIDEMARK_{name.upper()} is not 0.0.0.0:{port}"
        if f"127.0.0.1:{port}:{port}\"" not in compose:
            yield f"deploy/compose.yaml does not publish {name}'s port {port} on 127.0.0.1"
    if f"tidemark:{listen['http']}" not in scrape:
        yield f"deploy/prometheus.yml does not scrape tidemark:{listen['http']}"


def main(arguments):
    if len(arguments) != 2 or not pathlib.Path(arguments[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[1])

    def read(name):
        return (root / name).read_text(encoding="utf-8")

    source = read("server/telemetry/metrics.cc")
    registered = set(re.findall(r'"(tidemark_[a-z0-9_]+)"', source))
    dashboard = read("deploy/grafana/tidemark.json")
    faults = [
        *check_metrics(registered, used(dashboard) | used(read("deploy/alerts.yml"))),
        *check_dashboard(json.loads(dashboard)),
        *check_limits(read("docs/operations.md"), read("deploy/tidemark.toml"), registered,
                      read("server/telemetry/metrics.h")),
        *check_ports(read("deploy/tidemark.toml"), read("Dockerfile"), read("deploy/compose.yaml"),
                     read("deploy/prometheus.yml")),
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
