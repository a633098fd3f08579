"""Values that the peers are fed with: one numpy array each, a function of n and a seed.

The orders after `very wide` are hostile: they are chosen against summaries that take what came early
for what will come.
"""
import numpy as np

TOOTH = 1_000_003  # values in one ramp of the sawtooth; a prime, so that windows cut it anywhere
BLOCK = 100_000  # values in one block of the shuffled blocks


def uniform(n, random):
    return random.random(n).astype(np.float32)


def ascending(n, random):
    return np.sort(uniform(n, random))


def lognormal(n, random):
    return np.exp(random.standard_normal(n, dtype=np.float32))


def few_distinct(n, random):
    return random.integers(1, 101, n).astype(np.float32)


def very_wide(n, random):
    values = np.exp(random.uniform(-80, 80, n)).astype(np.float32)
    values[random.random(n) < 0.5] *= -1
    return values


def shuffled_blocks(n, random):
    values = ascending(n, random)
    whole = n - n % BLOCK
    blocks = values[:whole].reshape(-1, BLOCK)
    return np.concatenate([random.permutation(blocks).reshape(-1), values[whole:]])


def zoom_in(n, random):
    """Least, greatest, second least, second greatest, ...: the middle comes last."""
    values = ascending(n, random)
    order = np.empty_like(values)
    order[0::2] = values[: (n + 1) // 2]
    order[1::2] = values[(n + 1) // 2 :][::-1]
    return order


def zoom_out(n, random):
    return zoom_in(n, random)[::-1].copy()


def sawtooth(n, random):
    del random
    return ((np.arange(n) % TOOTH) / TOOTH).astype(np.float32)


def drifting(n, random):
    values = uniform(n, random)
    values *= 0.01
    values += np.linspace(0, 1, n, dtype=np.float32)
    return values


def outliers(n, random):
    """A narrow hump, and one value in ten thousand up to 10^30 away from it."""
    values = 1000 + random.standard_normal(n, dtype=np.float32)
    far = random.integers(0, n, max(1, n // 10_000))
    values[far] = very_wide(far.size, random)
    return values


INPUTS = {
    "random": uniform,
    "sorted": ascending,
    "reversed": lambda n, random: ascending(n, random)[::-1].copy(),
    "lognormal": lognormal,
    "few distinct": few_distinct,
    "very wide": very_wide,
    "shuffled blocks": shuffled_blocks,
    "zoom in": zoom_in,
    "zoom out": zoom_out,
    "sawtooth": sawtooth,
    "drifting": drifting,
    "outliers": outliers,
}


def make(name, n, seed=20):
    return INPUTS[name](n, np.random.default_rng(seed))


def zipf(n, dtype, seed=20):
    """Zipf(1.1) over 2^24 items, their numbers scattered over the range of the type."""
    random = np.random.default_rng(seed)
    ranks = np.empty(n, np.int64)
    filled = 0
    while filled < n:
        drawn = random.zipf(1.1, min(n - filled + 1000, 1 << 20))
        drawn = drawn[drawn <= 1 << 24][: n - filled]
        ranks[filled : filled + drawn.size] = drawn
        filled += drawn.size
    with np.errstate(over="ignore"):
        if np.dtype(dtype).itemsize == 4:
            return ranks.astype(np.uint32) * np.uint32(0x9E3779B1)
        return ranks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
