package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.kernel.Origin;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import dev.weft.process.WaitTime;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * The ranks of an operator on GPUs, how they reach each other, and their Bs: what all builders have
 * in common. Used by the thread that prepares the operator.
 */
final class CudaGroup {

    /** Rows of gathered A and of C are counted with 32 bits on the device. */
    static final long MAX_ROWS = Integer.MAX_VALUE;

    /** Null if the peers are host memory. */
    final Transport fabric;

    final Gpu gpu;
    final int rank;
    final List<DeviceOperands.B> bs = new ArrayList<>();

    /** Those Bs that other operators may use, by number. */
    final Map<Integer, CudaWeights> weights = new HashMap<>();

    private Duration deadline;
    private boolean staged;

    /**
     * @param fabric null if the peers are host memory
     * @param rank if there is no fabric
     */
    CudaGroup(Fabric fabric, Gpu gpu, int rank) {
        this.fabric = fabric == null ? null : Transport.of(fabric);
        this.gpu = gpu;
        this.rank = fabric == null ? rank : fabric.rank();
        this.deadline = fabric == null ? Duration.ofSeconds(30) : fabric.deadline();
    }

    void add(CudaWeights given) {
        given.checkIsOn(gpu);
        weights.put(bs.size(), given);
        bs.add(given.operand());
    }

    void deadline(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw new IllegalArgumentException("deadline " + limit + ": expected more than zero");
        }
        this.deadline = limit;
    }

    long deadlineNs() {
        return WaitTime.nanoseconds(deadline);
    }

    /** What travels goes through host memory, even if ranks reach each other's GPUs. */
    void stage() {
        if (fabric == null) {
            throw new IllegalArgumentException(
                    "staged ranks with peers in host memory: expected ranks of a fabric");
        }
        this.staged = true;
    }

    /** Whether what travels goes through the ranks' host memory. */
    boolean isStaged() {
        return fabric != null && fabric.size() > 1 && (staged || !fabric.sharesMemory());
    }

    /** Prepares something in agreement with the other ranks; if it fails, they fail too. */
    <T> T prepare(Supplier<T> prepared) {
        List<CudaWeights> held = new ArrayList<>();
        try {
            gpu.bind();
            for (CudaWeights each : weights.values()) {
                each.hold();
                held.add(each);
            }
            return prepared.get();
        } catch (RuntimeException | Error e) {
            if (fabric != null) {
                fabric.fail(e);
            }
            throw e;
        } finally {
            held.forEach(CudaWeights::letGo);
        }
    }

    /**
     * Makes something of parts. If that fails, those that are there are closed, the latest first.
     */
    static <T> T assemble(Function<Deque<AutoCloseable>, T> assembly) {
        Deque<AutoCloseable> parts = new ArrayDeque<>();
        try {
            return assembly.apply(parts);
        } catch (RuntimeException | Error e) {
            for (AutoCloseable part : parts) {
                try {
                    part.close();
                } catch (Exception also) {
                    e.addSuppressed(also);
                }
            }
            throw e;
        }
    }

    /** Something to multiply in a trial. All ranks meet afterwards, since this needs the GPU. */
    void fill(DeviceMatrix a, byte value, GpuStream stream) {
        long bytes = a.rows() * a.pitchBytes();
        if (bytes > 0) {
            CudaMemory.fill8Async(a.address(), value, bytes, stream.handle());
            stream.synchronize();
        }
        barrier();
    }

    void barrier() {
        if (fabric != null) {
            fabric.barrier();
        }
    }

    /**
     * How many ranks share this GPU's multiprocessors at the same time, or 0 if none does. Grids
     * that wait for others must fit side by side and leave some free: within one GPU the driver
     * copies by a kernel. Collective if there is a fabric.
     *
     * @param waits whether grids wait for others
     */
    int sharers(boolean waits) {
        if (fabric == null) {
            return 0;
        }
        long[] gpus = fabric.exchange(gpu.identity());
        int sharers = (int) Arrays.stream(gpus).filter(id -> id == gpu.identity()).count();
        return waits && sharers > 1 ? sharers : 0;
    }

    /** The largest of all ranks' numbers: what ranks show each other must be laid out alike. */
    int most(int number) {
        return fabric == null
                ? number
                : (int) Arrays.stream(fabric.exchange(number)).max().orElse(number);
    }

    /**
     * @param origins by flag: whose rows it tells of
     * @param due flags of what arrives
     * @param counters by call: what the words behind the flags hold at its end
     * @param work floating-point operations of a call's products
     */
    CallEvents events(
            List<Origin> origins,
            int[] due,
            Peers peers,
            CudaBuffers buffers,
            IntFunction<Map<Integer, Integer>> counters,
            double work) {
        return new CallEvents(
                rank,
                origins,
                due,
                peers::worldRank,
                buffers,
                counters,
                fabric == null ? () -> {} : fabric::worked,
                fabric == null ? () -> {} : fabric::checkPeers,
                deadlineNs(),
                work);
    }

    /** Refuses what no kernel multiplies. */
    void checkTypes(DType aType, DType outType, List<Long> columns) {
        if (aType == DType.FP32) {
            throw new IllegalArgumentException(
                    "A of fp32 on the GPU: expected fp16 or bf16 (fp32 runs on the CPU)");
        }
        if (outType != DType.FP32 && outType != aType) {
            throw new IllegalArgumentException(
                    "output of %s for inputs of %s: expected fp32 or the inputs' type"
                            .formatted(outType.label(), aType.label()));
        }
        for (int i = 0; i < bs.size(); i++) {
            DType type = bs.get(i).blocks() == null ? bs.get(i).dtype() : aType;
            if (type != aType || columns.get(i) < 1) {
                throw new IllegalArgumentException(
                        "B number %d is %s with N = %d: expected %s and N of at least 1"
                                .formatted(i, type.label(), columns.get(i), aType.label()));
            }
        }
    }
}
