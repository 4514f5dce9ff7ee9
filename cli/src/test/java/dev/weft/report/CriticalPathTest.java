package dev.weft.report;

import static dev.weft.report.Calls.call;
import static dev.weft.report.Calls.compute;
import static dev.weft.report.Calls.lane;
import static dev.weft.report.Calls.product;
import static dev.weft.report.Calls.rank;
import static dev.weft.report.Calls.track;
import static dev.weft.report.Calls.transfer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class CriticalPathTest {

    private static List<Integer> path(CallSpans call) {
        return CriticalPath.of(call, new SpanDependencies(call));
    }

    /**
     * Rank 1 multiplies its own rows (2) and the first chunk (3) in time; the second one (5) has to
     * wait for its transfer (1), which waited for the lane's first (0).
     */
    private static CallSpans pushed(long ownProductEndNs) {
        return call(
                rank(0, lane(transfer(0, 1, 1, 0, 1, 100), transfer(0, 1, 1, 1, 100, 300))),
                rank(
                        1,
                        compute(
                                product(1, 1, 0, 200, 0, ownProductEndNs),
                                product(0, 1, 0, 100, ownProductEndNs, ownProductEndNs + 50),
                                Calls.wait(0, ownProductEndNs + 50, 300),
                                product(0, 1, 100, 100, 300, 400))));
    }

    @Test
    void leadsThroughTheTransfersThatWereWaitedFor() {
        assertEquals(List.of(0, 1, 5), path(pushed(150)));
    }

    @Test
    void leadsThroughTheProductsWhereTheRowsWereThere() {
        CallSpans call =
                call(
                        rank(0, lane(transfer(0, 1, 1, 0, 0, 50))),
                        rank(
                                1,
                                compute(
                                        product(1, 1, 0, 100, 0, 150),
                                        product(0, 1, 0, 100, 150, 250)),
                                track("compute-1", product(1, 1, 100, 100, 0, 249))));
        assertEquals(List.of(1, 2), path(call));
    }

    @Test
    void followsAChunkRoundTheRing() {
        CallSpans call =
                call(
                        rank(0, lane(transfer(0, 1, 1, 0, 0, 10))),
                        rank(1, lane(transfer(0, 2, 2, 0, 11, 21))),
                        rank(
                                2,
                                compute(
                                        product(2, 2, 0, 100, 0, 15),
                                        product(0, 2, 0, 100, 22, 30))));
        assertEquals(List.of(0, 1, 3), path(call));
    }

    @Test
    void endsThoughClocksMakeTwoSpansWaitForEachOther() {
        Timeline.Span product = product(0, 1, 0, 100, 10, 30);
        CallSpans call =
                call(rank(0), rank(1, lane(transfer(0, 0, 1, 0, 10, 40)), compute(product)));
        assertEquals(List.of(0), path(call), "the transfer ended last, and nothing was before it");
        CallSpans same =
                call(rank(0), rank(1, lane(transfer(0, 0, 1, 0, 10, 20)), compute(product)));
        assertEquals(List.of(1), path(same), "begun at once: it cannot have waited for it");
    }

    /** As on an accelerator: blocks 1 and 2 begin together when block 0 ends. */
    @Test
    void goesOnBehindBlocksThatBeginTogether() {
        CallSpans call =
                call(
                        rank(
                                0,
                                compute(
                                        product(0, 0, 0, 10, 0, 100),
                                        product(0, 0, 10, 10, 100, 190),
                                        product(0, 0, 20, 10, 100, 200))));
        assertEquals(List.of(0, 2), path(call));
    }

    @Test
    void aCallWithoutSpansHasNone() {
        assertEquals(List.of(), path(CallSpans.of(List.of(), 4, 4)));
        assertEquals(
                List.of(),
                path(call(rank(0, lane(Calls.wait(0, 0, 9))))),
                "waits alone lead nowhere");
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO"},
            mode = EnumSource.Mode.EXCLUDE)
    void isAChainInTimeFromSomethingToTheLastSpan(Algorithm algorithm) {
        Shards shards = Shards.even(96, 3);
        check(Calls.real(algorithm, shards, 1, builder -> builder.chunkRows(8)));
        check(Calls.simulated("Ascend910B1", algorithm, shards, 4));
    }

    private static void check(CallSpans call) {
        List<Integer> path = path(call);
        assertTrue(!path.isEmpty(), "something decided it");
        long lastEnd = 0;
        for (int i = 0; i < call.size(); i++) {
            if (call.span(i).kind() != Kind.WAIT) {
                lastEnd = Math.max(lastEnd, call.span(i).endNs());
            }
        }
        assertEquals(lastEnd, call.span(path.getLast()).endNs());
        for (int i = 1; i < path.size(); i++) {
            assertTrue(call.span(path.get(i - 1)).startNs() < call.span(path.get(i)).startNs());
            assertNotEquals(Kind.WAIT, call.span(path.get(i)).kind());
        }
    }
}
