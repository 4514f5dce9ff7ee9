"""Gathers and products by PyTorch on one GPU, stepped by weft bench gpu.

Answers "ready PyTorch VERSION" first, and then every line with one line:

    row TYPE K N R0,R1,...  one rank on the GPU, its peers' rows in pinned memory: "ok CUTS"
    g                       nanoseconds of a graph of s or p, whichever is faster in one
    m, s, p                 nanoseconds of a product alone; of a gather, then the product; of
                            chunks that are multiplied as they come, on two streams
    fused RANKS M K N       ranks that share the GPU, as processes: "ok"
    f                       nanoseconds of their torch.ops.symm_mem.fused_all_gather_matmul
    norm RANKS M K N        products of ranks on one GPU, added, plus a residual, normalized: "ok"
    n                       nanoseconds of these, one operation after the other, by the clock
    free                    "ok": nothing is kept

What PyTorch refuses is answered with "refused WHY". Data are random; the pipelined product is
compared with the plain one.
"""

import gc
import multiprocessing
import os
import socket
import statistics
import sys
import time

import torch

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
CUTS = (1, 2, 4, 8)  # chunks of a shard; the fastest is kept
DEADLINE_S = 90


class Row:
    """Rank 0 of a gather."""

    def __init__(self, kind, k, n, rows):
        dtype = TYPES[kind]
        self.gathered = torch.randn(sum(rows), k, device="cuda").to(dtype)
        self.b = torch.randn(k, n, device="cuda").to(dtype)
        self.c = torch.empty(sum(rows), n, dtype=dtype, device="cuda")
        self.own = rows[0]
        self.peers = []
        first = rows[0]
        for count in rows[1:]:
            if count > 0:
                host = torch.empty(count, k, dtype=dtype, pin_memory=True)
                host.copy_(self.gathered[first : first + count])
                self.peers.append((first, host))
            first += count
        self.copies = torch.cuda.Stream()
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.arrived = [torch.cuda.Event() for _ in range(len(self.peers) * max(CUTS))]
        self.verify()
        self.cuts = min(CUTS, key=self.median_ns)
        self.graph = None

    def median_ns(self, cuts):
        self.cuts = cuts
        return statistics.median(self.take_ns(self.pipelined) for _ in range(5))

    def verify(self):
        self.product()
        expected = self.c.float()
        for self.cuts in CUTS:
            self.c.fill_(float("nan"))
            for first, host in self.peers:
                self.gathered[first : first + len(host)].fill_(float("nan"))
            torch.cuda.synchronize()
            self.pipelined()
            torch.cuda.synchronize()
            off = ((self.c.float() - expected).norm() / expected.norm()).item()
            if not off < 1e-2:
                raise RuntimeError(f"the product in {self.cuts} chunks is off by {off}")

    def take_ns(self, what):
        self.begin.record()
        what()
        self.end.record()
        self.end.synchronize()
        return round(1e6 * self.begin.elapsed_time(self.end))

    def product(self):
        torch.mm(self.gathered, self.b, out=self.c)

    def sequential(self):
        for first, host in self.peers:
            self.gathered[first : first + len(host)].copy_(host, non_blocking=True)
        self.product()

    def pipelined(self):
        self.copies.wait_stream(torch.cuda.current_stream())
        chunks = []
        with torch.cuda.stream(self.copies):
            for first, host in self.peers:
                each = -(-len(host) // self.cuts)
                for at in range(0, len(host), each):
                    part = host[at : at + each]
                    rows = slice(first + at, first + at + len(part))
                    self.gathered[rows].copy_(part, non_blocking=True)
                    self.arrived[len(chunks)].record()
                    chunks.append(rows)
        if self.own > 0:
            torch.mm(self.gathered[: self.own], self.b, out=self.c[: self.own])
        for event, rows in zip(self.arrived, chunks):
            event.wait()
            torch.mm(self.gathered[rows], self.b, out=self.c[rows])

    def captured(self):
        graphs = []
        for steps in (self.sequential, self.pipelined):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                steps()
            graphs.append(graph)

        def ns(graph):
            return statistics.median(self.take_ns(graph.replay) for _ in range(9))

        return min(graphs, key=ns)

    def take_graph_ns(self):
        if self.graph is None:
            self.graph = self.captured()
        return self.take_ns(self.graph.replay)


class Norm:
    """An all-reduce with a norm of ranks that share the GPU, unfused."""

    def __init__(self, ranks, m, k, n):
        def random(*shape):
            return torch.randn(*shape, device="cuda").to(torch.bfloat16)

        self.a = [random(m, k) for _ in range(ranks)]
        self.b = [random(k, n) for _ in range(ranks)]
        self.parts = [random(m, n) for _ in range(ranks)]
        self.residual = random(m, n)
        self.weight = random(n)
        self.results = [random(m, n) for _ in range(ranks)]
        self.step()
        sums = sum(a.float() @ b.float() for a, b in zip(self.a, self.b))
        sums += self.residual.float()
        expected = sums * torch.rsqrt(sums.square().mean(1, keepdim=True) + 1e-5)
        expected *= self.weight.float()
        off = ((self.results[-1].float() - expected).norm() / expected.norm()).item()
        if not off < 1e-2:
            raise RuntimeError(f"the rows are off by {off}")

    def step(self):
        for a, b, part in zip(self.a, self.b, self.parts):
            torch.mm(a, b, out=part)
        sums = self.parts[0]
        for part in self.parts[1:]:
            sums = sums + part
        sums = sums + self.residual
        rows = torch.nn.functional.rms_norm(sums, self.weight.shape, self.weight, 1e-5)
        for result in self.results:
            result.copy_(rows)

    def take_ns(self):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        self.step()
        torch.cuda.synchronize()
        return time.perf_counter_ns() - begin


def fused_rank(rank, ranks, m, k, n, port, pipe):
    """One of the processes that share the GPU."""
    try:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        os.environ["TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"] = "1"
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric

        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        group = dist.group.WORLD.group_name
        a = symmetric.empty(m // ranks, k, dtype=torch.bfloat16, device="cuda")
        a.normal_()
        b = torch.randn(k, n, device="cuda").to(torch.bfloat16)
        symmetric.rendezvous(a, group)

        def call():
            return torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, group)

        gathered, products = call()
        torch.cuda.synchronize()
        expected = (gathered @ b).float()
        off = ((products[0].float() - expected).norm() / expected.norm()).item()
        if not off < 1e-2:
            raise RuntimeError(f"its product is off by {off}")
        pipe.send("ok")
        while pipe.recv():
            dist.barrier()
            begin = time.perf_counter_ns()
            call()
            torch.cuda.synchronize()
            pipe.send((begin, time.perf_counter_ns()))
    except EOFError:
        pass
    except Exception as error:  # told to the process that asked
        pipe.send("refused " + words(error))


class Fused:
    """Ranks that share the GPU."""

    def __init__(self, ranks, m, k, n):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        spawn = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(
                target=fused_rank, args=(rank, ranks, m, k, n, port, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        try:
            for answer in self.answers():
                if answer != "ok":
                    raise RuntimeError(answer.removeprefix("refused "))
        except Exception:
            self.close()
            raise

    def answers(self):
        result = []
        for pipe in self.pipes:
            if not pipe.poll(DEADLINE_S):
                raise RuntimeError(f"no answer of a rank within {DEADLINE_S} s")
            result.append(pipe.recv())
        return result

    def take_ns(self):
        for pipe in self.pipes:
            pipe.send(True)
        spans = self.answers()
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def close(self):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            process.kill()


def words(error):
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]


def main():
    torch.zeros(1, device="cuda")
    print("ready PyTorch", torch.__version__, flush=True)
    row = fused = norm = None
    for line in sys.stdin:
        what, *rest = line.split()
        try:
            if what in ("row", "fused", "norm", "free"):
                if fused:
                    fused.close()
                row = fused = norm = None
                gc.collect()
                torch.cuda.empty_cache()
                answer = "ok"
            if what == "row":
                kind, k, n, rows = rest
                row = Row(kind, int(k), int(n), [int(each) for each in rows.split(",")])
                answer = f"ok {row.cuts}"
            elif what == "fused":
                fused = Fused(*(int(each) for each in rest))
            elif what == "norm":
                norm = Norm(*(int(each) for each in rest))
            elif what == "n":
                answer = str(norm.take_ns())
            elif what == "f":
                answer = str(fused.take_ns())
            elif what == "g":
                answer = str(row.take_graph_ns())
            elif what in "msp":
                steps = {"m": row.product, "s": row.sequential, "p": row.pipelined}
                answer = str(row.take_ns(steps[what]))
        except Exception as error:  # told to the bench, which goes on without
            answer = "refused " + words(error)
        print(answer, flush=True)
    if fused:
        fused.close()


if __name__ == "__main__":
    main()
