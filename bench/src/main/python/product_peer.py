"""One product per line of input, by NumPy or PyTorch, stepped by weft bench.

    product_peer.py numpy|torch M N K THREADS fp32|bf16

Answers "ready NAME VERSION" first, then every line: "s" with the nanoseconds of one product,
"c" with the product's weighted sum. The environment limits the threads.
"""

import sys
import time

import numpy as np


def values(salt, count):
    """The same numbers as MadeUpData.value in the Java sources."""
    h = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1)
    h += np.uint32((salt * 0x85EBCA77) & 0xFFFFFFFF)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    h *= np.uint32(0x297A2D39)
    h ^= h >> np.uint32(15)
    return (h >> np.uint32(16)).astype(np.float32) * np.float32(2.0**-16) - np.float32(0.5)


def main():
    kind = sys.argv[1]
    m, n, k, threads = (int(text) for text in sys.argv[2:6])
    a = values(1, m * k).reshape(m, k)
    b = values(2, k * n).reshape(k, n)
    c = np.zeros((m, n), dtype=np.float32)
    if kind == "torch":
        import torch

        torch.set_num_threads(threads)
        dtype = torch.bfloat16 if sys.argv[6] == "bf16" else torch.float32
        left, right, target = (torch.from_numpy(x).to(dtype) for x in (a, b, c))
        print("ready PyTorch", torch.__version__, flush=True)

        def product():
            torch.matmul(left, right, out=target)

        def result():
            return target.float().numpy()

    else:
        print("ready NumPy", np.__version__, flush=True)

        def product():
            np.matmul(a, b, out=c)

        def result():
            return c

    for line in sys.stdin:
        if line.startswith("s"):
            start = time.perf_counter_ns()
            product()
            print(time.perf_counter_ns() - start, flush=True)
        elif line.startswith("c"):
            rows, cols = values(3, m).astype(np.float64), values(4, n).astype(np.float64)
            print(repr(float(rows @ (result().astype(np.float64) @ cols))), flush=True)


main()
