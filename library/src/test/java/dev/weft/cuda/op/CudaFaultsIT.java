package dev.weft.cuda.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.World;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The fault table's rows for ranks on a GPU, as far as threads can suffer them; processes that are
 * killed or stopped are in {@link CudaProcessesIT}. Every call is right, or every rank's call ends
 * with a typed error. Each case prints what became of it.
 */
@Tag("gpu")
class CudaFaultsIT {

    private static final int RANKS = 3;
    private static final int VICTIM = 1;
    private static final int FAULT_CALL = 2;
    private static final Duration DEADLINE = Duration.ofSeconds(1);

    private Gpu gpu;

    private enum Fault {
        DELAY,
        DROP,
        DUPLICATE,
        CORRUPT,
        STALL,
        THROW
    }

    @BeforeEach
    void openGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
        gpu = Gpu.open(0);
    }

    /** Lets a fault happen to the copies that the victim issues in one call. */
    private record Injection(Fault fault, boolean last, AtomicInteger copies, AtomicInteger issued)
            implements CopyStreams.Hook {

        private boolean isNow() {
            int first = (FAULT_CALL - 1) * copies.get();
            return issued.get() == first + (last ? copies.get() - 1 : 0);
        }

        @Override
        public void beforeCopy(Copy copy, GpuStream lane) {
            if (isNow() && fault == Fault.THROW) {
                throw new IllegalStateException("the press broke");
            } else if (isNow() && (fault == Fault.DELAY || fault == Fault.STALL)) {
                long ms = fault == Fault.DELAY ? 100 : 2 * DEADLINE.toMillis() + 500;
                try {
                    TimeUnit.MILLISECONDS.sleep(ms);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        }

        @Override
        public void writeFlag(Copy copy, int value, IntConsumer write) {
            boolean now = isNow();
            issued.incrementAndGet();
            if (now && fault == Fault.CORRUPT) {
                write.accept(value + (1 << 20));
            } else if (!now || fault != Fault.DROP) {
                write.accept(value);
            }
            if (now && fault == Fault.DUPLICATE) {
                write.accept(value);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "DELAY, mesh-pull, false",
        "DELAY, ring, true",
        "DUPLICATE, mesh-pull, false",
        "DUPLICATE, mesh-push, true",
        "DROP, mesh-pull, false",
        "DROP, mesh-push, true",
        "CORRUPT, mesh-pull, false",
        "CORRUPT, mesh-push, true",
        "STALL, mesh-push, false",
        "STALL, ring, true",
        "THROW, mesh-pull, false",
        "THROW, ring, true",
    })
    void aFaultEndsAsPromised(Fault fault, String algorithm, boolean last) {
        AtomicReferenceArray<RuntimeException> ends = new AtomicReferenceArray<>(RANKS);
        long[] endNs = new long[RANKS];
        long[] startNs = new long[1];
        try (Arena arena = Arena.ofShared();
                World world = World.threads(RANKS, DEADLINE)) {
            DeviceProblem problem =
                    DeviceProblem.random(arena, Shards.of(384, 200, 300), 256, 192, DType.BF16);
            world.run(
                    fabric -> {
                        gpu.bind();
                        try {
                            calls(fabric, problem, fault, Algorithm.of(algorithm), last, startNs);
                        } catch (RuntimeException e) {
                            // Its own exception: the world would throw that of one rank only.
                            ends.set(fabric.rank(), e);
                            endNs[fabric.rank()] = System.nanoTime();
                        }
                    });
        }
        boolean harmless = fault == Fault.DELAY || fault == Fault.DUPLICATE;
        StringBuilder told = new StringBuilder();
        boolean corrupt = false;
        long latestMs = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            RuntimeException end = ends.get(rank);
            told.append(' ').append(end == null ? "right" : end.getClass().getSimpleName());
            corrupt |= end instanceof CorruptSignalException;
            boolean own = rank == VICTIM && fault == Fault.THROW;
            assertEquals(harmless, end == null, () -> "ended with " + end);
            assertTrue(end == null || own || end instanceof FabricException, () -> "" + end);
            if (end != null) {
                latestMs = Math.max(latestMs, (endNs[rank] - startNs[0]) / 1_000_000);
            }
        }
        assertEquals(fault == Fault.CORRUPT, corrupt, told.toString());
        System.out.printf(
                "fault %s, %s, %s chunk:%s, %d ms%n",
                fault, algorithm, last ? "last" : "first", told, latestMs);
    }

    private void calls(
            Fabric fabric,
            DeviceProblem problem,
            Fault fault,
            Algorithm algorithm,
            boolean last,
            long[] startNs) {
        int rank = fabric.rank();
        AtomicInteger copies = new AtomicInteger();
        CopyStreams.Hook hook =
                rank == VICTIM
                        ? new Injection(fault, last, copies, new AtomicInteger())
                        : CopyStreams.Hook.NONE;
        try (CudaAllGatherMatmul op =
                        problem.describe(CudaAllGatherMatmul.on(fabric, gpu))
                                .copies(hook)
                                .algorithm(algorithm)
                                .deadline(DEADLINE)
                                .prepare();
                DeviceCheck check = new DeviceCheck(gpu);
                GpuStream stream = GpuStream.create()) {
            copies.set(op.copiesPerCall());
            DeviceMatrix a = DeviceProblem.upload(problem.a(), stream);
            DeviceMatrix b = DeviceProblem.upload(problem.b(), stream);
            for (int call = 1; call <= 3; call++) {
                op.nextShard().upload(problem.shard(rank), stream);
                check.poison(op.product(0));
                fabric.barrier();
                if (rank == VICTIM && call == FAULT_CALL) {
                    startNs[0] = System.nanoTime();
                }
                op.callInPlace(View.PIPELINED);
                DeviceCheck.Verdict verdict = check.product(a, b, false, op.product(0));
                assertTrue(verdict.passed(), "call " + call + ": " + verdict);
            }
        }
    }
}
