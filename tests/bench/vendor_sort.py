#!/usr/bin/env python3
"""Sorts on the GPU with the vendor's radix sort, in the columns of gpu_bench's CSV.

usage: vendor_sort.py [--csv FILE] [--max-log2 K] [--seconds S] [--device cuda|cpu]

Uses CuPy or PyTorch, whichever can be imported, on a CUDA device; says so and ends with status 0 where
there is neither. Run it right behind gpu_bench on the same machine. `--device cpu` tries the script
out with PyTorch on the CPU; that is no figure of a GPU.

Four windows of 2^K keys as four sorts of one window each, and as one sort of 4 × 2^K keys; of PyTorch,
which returns the keys' places beside them, that is a sort of keys with payloads. Device-only times are
by the vendor's events with the keys resident; end to end holds the copies from and to page-locked
memory. Signed keys from 0 to 2^31 - 1: order and bits are then the unsigned ones'.
"""
import argparse
import csv
import datetime
import os
import statistics
import time

COLUMNS = (
    "section,subject,form,parameter,key_bits,payload_bits,windows,log2_keys,rounds,"
    "ms_least,ms_median,ms_greatest,device_ms_least,device_ms_median,device_ms_greatest,"
    "timer_ms_median,keys_per_s,device_keys_per_s,bus_bytes,bus_bytes_per_s,bus_share,"
    "comparisons,passes,copies,draw_calls,device_bytes,additions,search_steps,lines,result,device,"
    "driver,software,date"
).split(",")
WINDOWS = 4


class Torch:
    """PyTorch: torch.sort, radix sort of CUB for long rows; keys and places come back."""

    payload_bits = {32: 64, 64: 64}

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.name = f"torch.sort {torch.__version__}"
        self.on_gpu = device == "cuda"
        self.driver = f"CUDA {torch.version.cuda}" if self.on_gpu else "CPU"
        self.hardware = torch.cuda.get_device_name() if self.on_gpu else "CPU"

    def make(self, windows, n, bits):
        dtype = self.torch.int32 if bits == 32 else self.torch.int64
        keys = self.torch.randint(0, 2**31 - 1, (windows, n), dtype=dtype)
        out = self.torch.empty_like(keys)
        if self.on_gpu:
            keys, out = keys.pin_memory(), out.pin_memory()
        return keys, out

    def upload(self, host):
        return host.to(self.device, non_blocking=True)

    def sort(self, keys):
        return [self.torch.sort(row).values for row in keys]

    def download(self, rows, out):
        for row, to in zip(rows, out):
            to.copy_(row, non_blocking=True)

    def wait(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def device_seconds(self, work):
        if not self.on_gpu:
            begin = time.perf_counter()
            work()
            return time.perf_counter() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def right(self, host, out):
        return self.torch.equal(self.torch.sort(host, dim=1).values, out)


class Cupy:
    """CuPy: cupy.sort, Thrust's radix sort; keys alone."""

    payload_bits = {32: 0, 64: 0}
    on_gpu = True

    def __init__(self, cupy, numpy):
        self.cupy, self.numpy = cupy, numpy
        self.name = f"cupy.sort {cupy.__version__}"
        self.hardware = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        self.driver = f"CUDA {cupy.cuda.runtime.runtimeGetVersion()}"

    def pinned(self, shape, dtype):
        count = shape[0] * shape[1]
        memory = self.cupy.cuda.alloc_pinned_memory(count * self.numpy.dtype(dtype).itemsize)
        return self.numpy.frombuffer(memory, dtype, count).reshape(shape)

    def make(self, windows, n, bits):
        dtype = self.numpy.uint32 if bits == 32 else self.numpy.uint64
        keys, out = self.pinned((windows, n), dtype), self.pinned((windows, n), dtype)
        keys[:] = self.numpy.random.default_rng(2006).integers(0, 2**31 - 1, (windows, n), dtype)
        return keys, out

    def upload(self, host):
        device = self.cupy.empty(host.shape, host.dtype)
        device.set(host)
        return device

    def sort(self, keys):
        return [self.cupy.sort(row) for row in keys]

    def download(self, rows, out):
        for row, to in zip(rows, out):
            row.get(out=to)

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def device_seconds(self, work):
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(begin, end) / 1e3

    def right(self, host, out):
        return bool((self.numpy.sort(host, axis=1) == out).all())


def library(device):
    """What can be imported and has a device; else None and why."""
    why = []
    if device == "cuda":
        try:
            import cupy
            import numpy

            cupy.cuda.runtime.getDeviceCount()
            return Cupy(cupy, numpy), ""
        except Exception as error:  # an import, or a driver that is not there
            why.append(f"cupy: {error}")
    try:
        import torch

        if device == "cpu" or torch.cuda.is_available():
            return Torch(torch, device), ""
        why.append("torch: no CUDA device")
    except Exception as error:
        why.append(f"torch: {error}")
    return None, "; ".join(why)


def spread(seconds):
    return [f"{1e3 * s:.6f}" for s in (min(seconds), statistics.median(seconds), max(seconds))]


def measure(of, windows, n, bits, seconds):
    host, out = of.make(windows, n, bits)
    whole, device = [], []
    until = None
    while until is None or len(whole) < 3 or (time.perf_counter() < until and len(whole) < 21):
        of.wait()
        begin = time.perf_counter()
        of.download(of.sort(of.upload(host)), out)
        of.wait()
        took = time.perf_counter() - begin
        keys = of.upload(host)
        of.wait()
        on_device = of.device_seconds(lambda keys=keys: of.sort(keys))
        if until is None:  # the first makes memory and is not counted
            until = time.perf_counter() + seconds
            continue
        whole.append(took)
        device.append(on_device)
    return whole, device, of.right(host, out)


def row_of(of, windows, log2_keys, bits, seconds, date):
    n = (WINDOWS << log2_keys) // windows
    whole, device, right = measure(of, windows, n, bits, seconds)
    keys = WINDOWS << log2_keys
    row = dict.fromkeys(COLUMNS, "")
    row.update(
        section="vendor", subject=of.name,
        form="four sorts" if windows == WINDOWS else "one sort of all",
        key_bits=bits, payload_bits=of.payload_bits[bits], windows=WINDOWS, log2_keys=log2_keys,
        rounds=len(whole), keys_per_s=f"{keys / statistics.median(whole):.0f}",
        device_keys_per_s=f"{keys / statistics.median(device):.0f}",
        bus_bytes=2 * keys * bits // 8,
        bus_bytes_per_s=f"{2 * keys * bits // 8 / statistics.median(whole):.0f}",
        result="ok" if right else "WRONG: differs from the library's sort on the host",
        device=of.hardware, driver=of.driver, software=0 if of.on_gpu else 1, date=date,
    )
    for name, value in zip(("least", "median", "greatest"), spread(whole)):
        row[f"ms_{name}"] = value
    for name, value in zip(("least", "median", "greatest"), spread(device)):
        row[f"device_ms_{name}"] = value
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv")
    parser.add_argument("--min-log2", type=int, default=10)
    parser.add_argument("--max-log2", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    of, why = library(options.device)
    if of is None:
        print(f"vendor_sort: nothing to measure: {why}")
        return 0
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    print(f"{of.name}, {of.hardware}, {of.driver}, {date}\n")
    print("| windows × keys × bits | form | end to end, ms | device only, ms | device, million keys/s | result |")
    print("|---|---|---|---|---|---|")
    file = open(options.csv, "a", newline="", encoding="utf-8") if options.csv else None
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n") if file else None
    if file and file.tell() == 0:
        writer.writeheader()
    right = True
    for bits in (32, 64):
        for log2_keys in range(options.min_log2, options.max_log2 + 1, 2):
            for windows in (WINDOWS, 1):
                row = row_of(of, windows, log2_keys, bits, options.seconds, date)
                right = right and row["result"] == "ok"
                print(f"| 4 × 2^{log2_keys} × {bits} | {row['form']} | {row['ms_median']} "
                      f"| {row['device_ms_median']} | {int(row['device_keys_per_s']) / 1e6:.0f} "
                      f"| {row['result']} |", flush=True)
                if file:
                    writer.writerow(row)
                    file.flush()
                    os.fsync(file.fileno())
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
