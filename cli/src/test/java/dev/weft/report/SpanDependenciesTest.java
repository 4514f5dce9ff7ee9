package dev.weft.report;

import static dev.weft.report.Calls.call;
import static dev.weft.report.Calls.columns;
import static dev.weft.report.Calls.compute;
import static dev.weft.report.Calls.lane;
import static dev.weft.report.Calls.product;
import static dev.weft.report.Calls.rank;
import static dev.weft.report.Calls.track;
import static dev.weft.report.Calls.transfer;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** On calls made by hand, where it is known what needs what, and on real and simulated ones. */
class SpanDependenciesTest {

    private static int[] releasedBy(CallSpans call, int number) {
        int[] numbers = new SpanDependencies(call).releasedBy(number);
        Arrays.sort(numbers);
        return numbers;
    }

    private static int[] numbers(int... numbers) {
        return numbers;
    }

    @Test
    void aPulledChunkReleasesTheProductsOfItsRows() {
        CallSpans call =
                call(
                        rank(0, compute()),
                        rank(
                                1,
                                lane(
                                        transfer(0, 0, 1, 0, 0, 10),
                                        transfer(0, 0, 1, 1, 10, 20),
                                        transfer(0, 0, 1, 2, 20, 30)),
                                compute(
                                        product(1, 1, 0, 300, 0, 5),
                                        product(0, 1, 0, 100, 10, 15),
                                        product(0, 1, 99, 2, 20, 25),
                                        product(0, 1, 100, 200, 30, 35))));
        assertArrayEquals(numbers(), releasedBy(call, 0), "a pull of the owner's own rows");
        assertArrayEquals(numbers(), releasedBy(call, 3), "own rows");
        assertArrayEquals(numbers(0), releasedBy(call, 4));
        assertArrayEquals(numbers(0, 1), releasedBy(call, 5), "rows of two chunks");
        assertArrayEquals(numbers(1, 2), releasedBy(call, 6));
        assertEquals(0, call.senderOf(0));
        assertEquals(1, call.rankOf(0));
    }

    @Test
    void aPushedChunkReleasesProductsAtTheOtherEnd() {
        CallSpans call =
                call(
                        rank(
                                0,
                                lane(transfer(0, 1, 1, 1, 0, 10), transfer(0, 1, 1, 0, 10, 20)),
                                compute(product(0, 0, 0, 200, 0, 5))),
                        rank(
                                1,
                                compute(
                                        Calls.wait(0, 0, 20),
                                        product(0, 1, 0, 100, 20, 25),
                                        product(0, 1, 100, 100, 25, 30))));
        assertArrayEquals(numbers(), releasedBy(call, 2), "own rows, though they are sent too");
        assertArrayEquals(numbers(), releasedBy(call, 3), "a wait needs nothing");
        assertArrayEquals(numbers(1), releasedBy(call, 4), "whatever the order of the chunks");
        assertArrayEquals(numbers(0), releasedBy(call, 5));
        assertEquals(0, call.senderOf(0));
    }

    /** Rank 0's chunks go to rank 1 and from there to rank 2; the last hop is a pull. */
    @Test
    void aForwardNeedsTheChunkThatItPassesOn() {
        CallSpans call =
                call(
                        rank(0, lane(transfer(0, 1, 1, 0, 0, 10), transfer(0, 1, 1, 1, 10, 20))),
                        rank(1, lane(transfer(0, 2, 2, 0, 12, 22), transfer(0, 2, 2, 1, 22, 32))),
                        rank(2, compute(product(0, 2, 0, 200, 32, 40))),
                        rank(
                                3,
                                lane(transfer(0, 2, 3, 1, 32, 42)),
                                compute(product(0, 3, 100, 50, 42, 50))));
        assertArrayEquals(numbers(), releasedBy(call, 0), "the owner's own rows");
        assertArrayEquals(numbers(0), releasedBy(call, 2));
        assertArrayEquals(numbers(1), releasedBy(call, 3));
        assertArrayEquals(numbers(2, 3), releasedBy(call, 4), "what came to rank 2 alone");
        assertArrayEquals(numbers(3), releasedBy(call, 5), "a pull from one that was passed it");
        assertArrayEquals(numbers(5), releasedBy(call, 6));
        SpanDependencies releases = new SpanDependencies(call);
        assertEquals(1, call.senderOf(2));
        assertEquals(2, call.senderOf(5));
    }

    /** Chunks 0 and 1 have the first rows, 2 and 3 the next ones. */
    @Test
    void aProductNeedsAllColumnsOfItsRowsAndAForwardItsOwnOnly() {
        CallSpans call =
                call(
                        rank(
                                0,
                                lane(
                                        columns(0, 1, 1, 0, 0, 0, 10),
                                        columns(0, 1, 1, 1, 0, 10, 20),
                                        columns(0, 1, 1, 2, 100, 20, 30),
                                        columns(0, 1, 1, 3, 100, 30, 40))),
                        rank(
                                1,
                                lane(columns(0, 2, 2, 1, 0, 20, 30)),
                                compute(
                                        product(0, 1, 0, 100, 20, 30),
                                        product(0, 1, 100, 100, 40, 50),
                                        product(0, 1, 0, 200, 50, 60))),
                        rank(2));
        assertArrayEquals(numbers(1), releasedBy(call, 4));
        assertArrayEquals(numbers(0, 1), releasedBy(call, 5));
        assertArrayEquals(numbers(2, 3), releasedBy(call, 6));
        assertArrayEquals(numbers(0, 1, 2, 3), releasedBy(call, 7));
    }

    /**
     * As a GPU tells it: two tiles of 100 rows by two of columns, and all of them rounded at once.
     */
    @Test
    void whatRoundsSumsNeedsAllTilesOfItsRows() {
        RunRecord.Rank rank =
                rank(
                        0,
                        track("copies-in", transfer(0, 1, 0, 0, 0, 10)),
                        track("finish", product(0, 0, 0, 200, 40, 50)),
                        track(
                                "compute-0",
                                product(0, 0, 0, 100, 10, 20),
                                product(0, 0, 100, 100, 20, 30)),
                        track(
                                "compute-1",
                                product(0, 0, 0, 100, 10, 22),
                                product(0, 0, 100, 100, 22, 40)));
        CallSpans call = CallSpans.of(List.of(rank), true, 2, 1, (group, member) -> member);
        assertArrayEquals(numbers(0, 2, 3, 4, 5), releasedBy(call, 1));
        assertArrayEquals(numbers(0), releasedBy(call, 2), "the sums that a tile starts from");
        assertArrayEquals(numbers(), releasedBy(call, 5), "other rows, and no other tile");
        assertEquals(
                List.of(0, 4, 5, 1), CriticalPath.of(call, new SpanDependencies(call)), "the path");
    }

    @Test
    void groupsDoNotMix() {
        Timeline.Track lane = lane(transfer(0, 0, 1, 0, 0, 10));
        Timeline.Track compute = compute(product(0, 1, 0, 100, 10, 20));
        CallSpans call =
                CallSpans.of(
                        List.of(
                                rank(0, 0, 0, 0),
                                rank(1, 0, 1, 0, lane, compute),
                                rank(2, 1, 0, 0),
                                rank(3, 1, 1, 0, lane, compute)),
                        4,
                        2);
        assertArrayEquals(numbers(0), releasedBy(call, 1));
        assertArrayEquals(numbers(2), releasedBy(call, 3));
        assertEquals(2, call.senderOf(2));
    }

    @Test
    void aGatherThatDoesNotSayItsWayReleasesNothing() {
        CallSpans call = Calls.withoutWays();
        assertArrayEquals(numbers(), releasedBy(call, 0));
        assertArrayEquals(numbers(), releasedBy(call, 1));
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO", "DIRECT"},
            mode = EnumSource.Mode.EXCLUDE)
    void everyRealProductIsReleasedByExactlyItsRows(Algorithm algorithm) {
        Shards shards = Shards.of(40, 8, 33);
        checkRows(Calls.real(algorithm, shards, 1, builder -> builder.chunkRows(8)), 1);
        checkRows(Calls.real(algorithm, shards, 2, builder -> builder.chunkRows(16)), 1);
        checkRows(
                Calls.real(
                        algorithm,
                        shards,
                        1,
                        builder -> builder.chunkRows(16).chunkCols(Calls.K / 2)),
                2);
        checkRows(Calls.simulated("cpu-100gbe", algorithm, shards, 4), 1);
    }

    /**
     * @param columnChunks transfers that bring the same rows
     */
    private static void checkRows(CallSpans call, int columnChunks) {
        SpanDependencies releases = new SpanDependencies(call);
        for (int i = 0; i < call.size(); i++) {
            Timeline.Span span = call.span(i);
            int[] needed = releases.releasedBy(i);
            if (span.kind() == Kind.COMPUTE && span.source() != call.rankOf(i)) {
                long covered = 0;
                for (int number : needed) {
                    covered += overlap(span, call.span(number));
                    assertEquals(call.rankOf(i), call.span(number).to());
                }
                assertEquals(span.rows() * columnChunks, covered, span::toString);
            } else if (span.kind() == Kind.TRANSFER && call.senderOf(i) != span.source()) {
                assertEquals(1, needed.length, "the hop before " + span);
                assertTrue(call.span(needed[0]).chunk() == span.chunk(), span::toString);
            } else {
                assertEquals(0, needed.length, span::toString);
            }
        }
    }

    private static long overlap(Timeline.Span one, Timeline.Span other) {
        long first = Math.max(one.firstRow(), other.firstRow());
        long end = Math.min(one.firstRow() + one.rows(), other.firstRow() + other.rows());
        return Math.max(0, end - first);
    }
}
