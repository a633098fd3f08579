"""What is compared, behind one face: rows of the two C tables (peer_c.cc), and the sketches of the
PyPI package `datasketches`, whose update() takes a whole numpy array and loops over it in C++.

Time is that of the thread's processor, taken around one call for millions of values: what Python
itself costs is a call, about a microsecond (call_seconds()).
"""
import ctypes
import time

import numpy as np

NO_BOUND = 2**64 - 1
DTYPES = {"f32": np.float32, "u32": np.uint32, "u64": np.uint64}


def thread_seconds():
    return time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) * 1e-9


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def heap_bytes():
    """Bytes that the C heap has handed out; None where the C library does not tell."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = _Mallinfo2
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Library:
    """A shared library with a table of peers."""

    def __init__(self, path, own):
        self.c = ctypes.CDLL(path)
        self.own = own  # Tidemark's
        size, pointer_type, real = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_double
        for name, result, arguments in [
            ("count", ctypes.c_int, []),
            ("name", ctypes.c_char_p, [size]),
            ("kind", ctypes.c_char_p, [size]),
            ("value", ctypes.c_char_p, [size]),
            ("promise", ctypes.c_char_p, [size]),
            ("epsilon", real, [size]),
            ("error", ctypes.c_char_p, []),
            ("make", pointer_type, [size]),
            ("free", None, [pointer_type]),
            ("add", ctypes.c_int, [pointer_type, pointer_type, size]),
            ("bytes", ctypes.c_int, [pointer_type, pointer_type]),
            ("quantiles", ctypes.c_int, [pointer_type, pointer_type, size] + [pointer_type] * 3),
            ("counts", ctypes.c_int, [pointer_type, pointer_type, size] + [pointer_type] * 2),
            ("heavy_hitters", ctypes.c_int64, [pointer_type, real]),
            ("quantile_seconds", real, [pointer_type, real, pointer_type, size]),
            ("heavy_hitters_seconds", real, [pointer_type, real, size]),
            ("merge_seconds", real, [pointer_type, pointer_type, size, pointer_type]),
        ]:
            function = getattr(self.c, "peers_" + name)
            function.restype, function.argtypes = result, arguments

    def rows(self):
        return [Row(self, i) for i in range(self.c.peers_count())]

    def check(self, result):
        if result is None or result < 0:
            raise RuntimeError(self.c.peers_error().decode())
        return result


class Row:
    def __init__(self, library, index):
        c = library.c
        self.library, self.index, self.own = library, index, library.own
        self.name = c.peers_name(index).decode()
        self.kind = c.peers_kind(index).decode()
        self.value = c.peers_value(index).decode()
        self.promise = c.peers_promise(index).decode()
        self.epsilon = c.peers_epsilon(index)

    def make(self):
        return NativePeer(self.library, self.library.check(self.library.c.peers_make(self.index)))


class NativePeer:
    def __init__(self, library, handle):
        self.library, self.c, self.handle = library, library.c, handle

    def add(self, array):
        self.library.check(self.c.peers_add(self.handle, pointer(array), array.size))

    def free(self):
        self.c.peers_free(self.handle)
        self.handle = None

    def bytes(self):
        """Of the summary, the most of it, of windows, exported."""
        four = np.zeros(4, np.uint64)
        self.library.check(self.c.peers_bytes(self.handle, pointer(four)))
        return [int(x) for x in four]

    def quantiles(self, phis):
        values = np.empty(phis.size, np.float32)
        low, high = np.empty(phis.size, np.uint64), np.empty(phis.size, np.uint64)
        self.library.check(
            self.c.peers_quantiles(
                self.handle, pointer(phis), phis.size, pointer(values), pointer(low), pointer(high)
            )
        )
        return values, low, high

    def counts(self, items):
        low, high = np.empty(items.size, np.uint64), np.empty(items.size, np.uint64)
        self.library.check(
            self.c.peers_counts(self.handle, pointer(items), items.size, pointer(low), pointer(high))
        )
        return low, high

    def heavy_hitters(self, support):
        return self.library.check(self.c.peers_heavy_hitters(self.handle, support))

    def quantile_seconds(self, phi, value, repeats):
        fresh = None if value is None else pointer(value)
        return self.library.check(
            self.c.peers_quantile_seconds(self.handle, phi, fresh, repeats)
        )

    def heavy_hitters_seconds(self, support, repeats):
        return self.library.check(
            self.c.peers_heavy_hitters_seconds(self.handle, support, repeats)
        )

    def merge_seconds(self, other, repeats):
        return self.library.check(
            self.c.peers_merge_seconds(self.handle, other.handle, repeats, None)
        )


class WheelRow:
    """A sketch of the PyPI package."""

    kind, value, own = "quantile", "f32", False

    def __init__(self, name, epsilon, promise, create):
        self.name, self.epsilon, self.promise, self.create = name + " (wheel)", epsilon, promise, create

    def make(self):
        return WheelPeer(self.create())


class WheelPeer:
    def __init__(self, sketch):
        self.sketch = sketch

    def add(self, array):
        self.sketch.update(array)

    def free(self):
        self.sketch = None

    def bytes(self):
        return [0, 0, 0, len(self.sketch.serialize())]

    def quantiles(self, phis):
        if hasattr(self.sketch, "get_quantiles"):
            values = self.sketch.get_quantiles(phis)
        else:
            values = [self.sketch.get_quantile(phi) for phi in phis]
        bounds = np.full(phis.size, NO_BOUND, np.uint64)
        return np.asarray(values, np.float32), bounds, bounds

    def quantile_seconds(self, phi, value, repeats):
        seconds = 0.0
        for _ in range(repeats):
            if value is not None:
                self.sketch.update(value)
            start = thread_seconds()
            self.sketch.get_quantile(phi)
            seconds += thread_seconds() - start
        return seconds / repeats

    def merge_seconds(self, other, repeats):
        seconds = 0.0
        for _ in range(repeats):
            copy = type(self.sketch).deserialize(self.sketch.serialize())
            start = thread_seconds()
            copy.merge(other.sketch)
            seconds += thread_seconds() - start
        return seconds / repeats


def wheel_rows():
    import datasketches as ds  # asked for by compare.py before

    confident = " %, 99 % confidence"
    return [
        WheelRow("KLL k=268", 0.01, "1.00" + confident, lambda: ds.kll_floats_sketch(268)),
        WheelRow("KLL k=2862", 0.001, "0.100" + confident, lambda: ds.kll_floats_sketch(2862)),
        WheelRow("KLL k=29000", 1e-4, "0.0105" + confident, lambda: ds.kll_floats_sketch(29000)),
        WheelRow("classic k=2048", 0, "0.095" + confident, lambda: ds.quantiles_floats_sketch(2048)),
        WheelRow("REQ k=50 HRA", 0, "relative to 1 - φ", lambda: ds.req_floats_sketch(50, True)),
        WheelRow("t-digest k=1000", 0, "none", lambda: ds.tdigest_float(1000)),
    ]


def call_seconds(row, repeats=2000):
    """What one call from Python costs, without values."""
    peer = row.make()
    nothing = np.empty(0, DTYPES[row.value])
    start = thread_seconds()
    for _ in range(repeats):
        peer.add(nothing)
    seconds = (thread_seconds() - start) / repeats
    peer.free()
    return seconds
