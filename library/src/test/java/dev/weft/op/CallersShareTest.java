package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/** Who waits for a call at once does some of its work; a call that was started runs by itself. */
class CallersShareTest {

    private static final long ROWS = 4;
    private static final long SIZE = 16;

    private final Set<Thread> multiplied = ConcurrentHashMap.newKeySet();

    private void with(boolean pinned, java.util.function.Consumer<AllGatherMatmul> program) {
        try (World world = World.threads(1);
                Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, DType.FP32, SIZE, SIZE);
            b.fill(() -> 1);
            GemmProxy engine =
                    new GemmProxy(
                            Gemms.byName("scalar"), () -> multiplied.add(Thread.currentThread()));
            world.run(
                    fabric -> {
                        AllGatherMatmulBuilder builder =
                                AllGatherMatmul.on(fabric)
                                        .a(Shards.of(ROWS), DType.FP32)
                                        .b(b)
                                        .algorithm(Algorithm.DIRECT)
                                        .computeWorkers(1)
                                        .engine(engine);
                        if (pinned) {
                            builder.pinWorkers();
                        }
                        try (AllGatherMatmul operator = builder.prepare()) {
                            program.accept(operator);
                        }
                    });
        }
    }

    private static Matrix ones(AllGatherMatmul operator) {
        Matrix shard = operator.nextShard();
        shard.fill(() -> 1);
        return shard;
    }

    @Test
    void theOnlyWorkerOfACallIsItsCaller() {
        with(
                false,
                operator -> {
                    assertEquals(SIZE, operator.call(ones(operator)).product().get(0, 0));
                    assertEquals(Set.of(Thread.currentThread()), multiplied);
                });
    }

    @Test
    void aCallThatWasStartedDoesNotNeedItsCaller() throws Exception {
        with(
                false,
                operator -> {
                    var pending = operator.start(ones(operator));
                    while (!pending.isDone()) {
                        Thread.onSpinWait();
                    }
                    assertEquals(SIZE, pending.await().product().get(0, 0));
                    assertNotEquals(Set.of(Thread.currentThread()), multiplied);
                    assertEquals(1, multiplied.size());
                });
    }

    /** The caller's own thread must not be pinned. */
    @Test
    void aPinnedWorkerIsAThreadOfItsOwn() {
        with(
                true,
                operator -> {
                    assertEquals(SIZE, operator.call(ones(operator)).product().get(0, 0));
                    assertTrue(!multiplied.contains(Thread.currentThread()));
                });
    }

    @Test
    void anInterruptedCallerMultipliesAllAndStaysInterrupted() {
        with(
                false,
                operator -> {
                    Matrix shard = ones(operator);
                    Thread.currentThread().interrupt();
                    assertEquals(SIZE, operator.call(shard).product().get(ROWS - 1, SIZE - 1));
                    assertTrue(Thread.interrupted());
                });
    }
}
