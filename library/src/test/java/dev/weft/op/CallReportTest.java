package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.CorruptSignalException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What every rank's error tells when one chunk, or one start, never comes or comes wrong. */
class CallReportTest {

    private static final int RANKS = 3;
    private static final int CALL = 3;
    private static final int SENDER = 1;
    private static final Shards SHARDS = Shards.of(12, 16, 8);

    private final Problem problem = Problem.create(Arena.ofAuto(), SHARDS, 12, 9, DType.FP16, 5);

    /**
     * What happens to the third transfer of one rank, from the third call on: the flag of a later
     * call would make up for it.
     */
    private enum Fault {
        DROP,
        CORRUPT
    }

    private static Object below(Object target, Method method, Object[] args) throws Throwable {
        try {
            return method.invoke(target, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(
                Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    private static Transport faulty(Transport fabric, Fault fault) {
        return proxy(
                Transport.class,
                (self, method, args) -> {
                    Object result = below(fabric, method, args);
                    return method.getName().equals("mover")
                            ? mover((ChunkMover) result, (IntConsumer) args[0], fault)
                            : result;
                });
    }

    private static ChunkMover mover(ChunkMover mover, IntConsumer ended, Fault fault) {
        return proxy(
                ChunkMover.class,
                (self, method, args) -> {
                    if (method.getName().equals("move")
                            && (int) args[0] == 2
                            && (int) args[2] >= CALL) {
                        if (fault == Fault.CORRUPT) {
                            int wrong = (int) args[2] + 2;
                            mover.move(2, (Move) args[1], wrong, (int) args[3]);
                        } else {
                            ended.accept(2);
                        }
                        return null;
                    }
                    return below(mover, method, args);
                });
    }

    /** The errors of all ranks, by rank, once rank 1 has run into the fault. */
    private FabricException[] run(OperatorKind kind, String algorithm, Fault fault) {
        return ends(
                fabric -> {
                    Transport own = fabric.rank() == SENDER ? faulty(fabric, fault) : fabric;
                    try (Operator<Matrix> op =
                            kind.on(own, problem, algorithm).chunkRows(4).prepare()) {
                        for (int call = 0; call < 5; call++) {
                            op.call(kind.input(problem, fabric.rank()));
                        }
                    }
                });
    }

    private static FabricException[] ends(Ranks.Body body) {
        FabricException[] ends = new FabricException[RANKS];
        assertThrows(
                FabricException.class,
                () ->
                        Ranks.run(
                                RANKS,
                                Duration.ofMillis(800),
                                fabric -> {
                                    try {
                                        body.run(fabric);
                                    } catch (FabricException e) {
                                        ends[fabric.rank()] = e;
                                        throw e;
                                    }
                                }));
        return ends;
    }

    /** These put: the sender says it sent what its peer says never came. */
    @ParameterizedTest
    @CsvSource({"GATHER, ring", "GATHER, mesh-push", "SCATTER, mesh-push", "ALL, chain"})
    void aDroppedChunkIsSeenFromBothEnds(OperatorKind kind, String algorithm) {
        FabricException[] ends = run(kind, algorithm, Fault.DROP);
        boolean lost = false;
        FailureReport sender = ends[SENDER].report().orElseThrow();
        for (int r = 0; r < RANKS; r++) {
            FailureReport report = ends[r].report().orElseThrow();
            assertEquals(r, report.rank());
            assertEquals(sender.operator(), report.operator());
            assertTrue(report.call() >= CALL, report.table());
            assertEquals(RANKS - 1, report.peers().size());
            assertTrue(
                    report.peers().stream().allMatch(peer -> peer.call() >= CALL - 1),
                    report.table());
            assertEquals(1, ends[r].getMessage().lines().count());
            for (FailureReport.Wait wait : report.waits()) {
                lost |= wait.from() == SENDER && wait.chunk() >= 0 && isSent(sender, r, wait);
            }
        }
        assertTrue(lost, "who waits for what was sent");
    }

    private static boolean isSent(FailureReport sender, int to, FailureReport.Wait wait) {
        return sender.call() > wait.number()
                || sender.sent().stream()
                        .flatMap(lane -> lane.runs().stream())
                        .anyMatch(run -> run.covers(to, wait));
    }

    @Test
    void whatCameAndWhatIsMissingIsCounted() {
        FabricException[] ends = run(OperatorKind.GATHER, "ring", Fault.DROP);
        // The ring goes from rank 1 to rank 2; its third transfer is chunk 2 of its own 4.
        FailureReport receiver = ends[2].report().orElseThrow();
        FailureReport.Received from =
                receiver.received().stream()
                        .filter(received -> received.source() == SENDER)
                        .findFirst()
                        .orElseThrow();
        assertEquals(4, from.of());
        assertEquals(2, from.missing(), receiver.table());
        assertEquals(3, from.arrived());
        assertEquals(3, from.last());
        assertTrue(
                receiver.waits().stream()
                        .anyMatch(
                                wait ->
                                        wait.source() == SENDER
                                                && wait.chunk() == 2
                                                && wait.number() == CALL
                                                && wait.thread().matches("(lane|compute)-0")),
                receiver.table());
    }

    /** Of sums only what was to come counts: here own rows, from both other ranks. */
    @Test
    void whatCameOfSumsAndWhatIsMissingIsCounted() {
        FabricException[] ends = run(OperatorKind.SCATTER, "mesh-push", Fault.DROP);
        // Rank 1 sends to rank 2 and rank 0 in turn: its third transfer is chunk 1 of rank 2.
        FailureReport receiver = ends[2].report().orElseThrow();
        assertEquals(
                List.of(new FailureReport.Received(2, 1, 2, 0, 1)),
                receiver.received(),
                receiver.table());
        assertTrue(
                receiver.waits().stream()
                        .anyMatch(
                                wait ->
                                        wait.what().equals(Awaited.PEER_SUMS)
                                                && wait.from() == SENDER
                                                && wait.chunk() == 1),
                receiver.table());
    }

    @ParameterizedTest
    @CsvSource({"GATHER, ring", "GATHER, mesh-push", "SCATTER, mesh-push", "ALL, chain"})
    void aCorruptFlagIsNeverTakenForAChunk(OperatorKind kind, String algorithm) {
        FabricException[] ends = run(kind, algorithm, Fault.CORRUPT);
        int corrupt = 0;
        for (FabricException end : ends) {
            if (end instanceof CorruptSignalException e) {
                corrupt++;
                assertEquals(SENDER, e.peer());
                assertTrue(e.seen() >= CALL + 2, e.getMessage());
            }
        }
        assertTrue(corrupt > 0, "somebody has noticed");
    }

    @ParameterizedTest
    @EnumSource
    void aRankThatNeverStartsIsToldOf(OperatorKind kind) {
        FabricException[] ends =
                ends(
                        fabric -> {
                            Matrix input = kind.input(problem, fabric.rank());
                            try (Operator<Matrix> op =
                                    kind.on(fabric, problem, "direct").prepare()) {
                                op.call(input);
                                fabric.barrier();
                                if (fabric.rank() != 2) {
                                    op.call(input);
                                }
                            }
                        });
        for (int r = 0; r < 2; r++) {
            FailureReport report = ends[r].report().orElseThrow();
            assertEquals(2, report.call());
            FailureReport.Wait wait =
                    report.waits().stream()
                            .filter(w -> w.what().equals(Awaited.SHARD))
                            .findFirst()
                            .orElseThrow();
            assertEquals(2, wait.from(), report.table());
            FailureReport.Peer late = report.peers().getLast();
            assertEquals(1, late.call(), "the latest call that it has started");
        }
    }
}
