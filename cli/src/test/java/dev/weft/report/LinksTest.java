package dev.weft.report;

import static dev.weft.report.Calls.call;
import static dev.weft.report.Calls.compute;
import static dev.weft.report.Calls.lane;
import static dev.weft.report.Calls.product;
import static dev.weft.report.Calls.rank;
import static dev.weft.report.Calls.transfer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Links.Link;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class LinksTest {

    private static Links links(CallSpans call) {
        return Links.of(call, Calls.BYTES_PER_ROW);
    }

    @Test
    void whatWentFromWhichRankToWhich() {
        CallSpans call =
                call(
                        rank(
                                0,
                                lane(
                                        transfer(0, 1, 1, 0, 0, 10),
                                        transfer(0, 1, 1, 1, 10, 25),
                                        transfer(2, 2, 0, 0, 30, 37)),
                                compute(product(2, 0, 0, 100, 40, 50))),
                        rank(1, lane(transfer(0, 2, 2, 0, 12, 20))),
                        rank(2));
        assertEquals(
                new Links(
                        3,
                        false,
                        List.of(
                                new Link(0, 1, 2000, 2, 25),
                                new Link(1, 2, 1000, 1, 8),
                                new Link(2, 0, 1000, 1, 7))),
                links(call),
                "a forward is the forwarder's, a pull the owner's");
        assertEquals(4000, links(call).bytes());
    }

    @Test
    void groupsHaveLinksOfTheirOwn() {
        CallSpans call =
                CallSpans.of(List.of(rank(3, 1, 1, 0, lane(transfer(0, 0, 1, 0, 0, 10)))), 4, 2);
        assertEquals(List.of(new Link(2, 3, 1000, 1, 10)), links(call).links());
        assertEquals(4, links(call).ranks());
    }

    @Test
    void rowsReadInPlaceAreLinksWithoutTime() {
        CallSpans call =
                call(
                        rank(
                                0,
                                compute(
                                        product(0, 0, 0, 100, 0, 10),
                                        product(1, 0, 0, 60, 10, 20),
                                        product(1, 0, 60, 40, 20, 30))),
                        rank(1));
        assertEquals(
                new Links(
                        2,
                        true,
                        List.of(new Link(1, 0, Math.round(100 * Calls.BYTES_PER_ROW), 2, 0))),
                links(call));
    }

    @Test
    void rowsReadForTwoPartsOfTheColumnsCountOnce() {
        CallSpans call =
                call(
                        rank(
                                0,
                                compute(product(0, 0, 0, 80, 0, 10), product(1, 0, 0, 60, 10, 20)),
                                compute(product(0, 0, 0, 80, 0, 10), product(1, 0, 0, 60, 10, 20))),
                        rank(1));
        assertEquals(Math.round(60 * Calls.BYTES_PER_ROW), links(call).bytes());
    }

    @Test
    void aGatherThatDoesNotSayItsWayHasNoLinks() {
        CallSpans call = Calls.withoutWays();
        ShownRun.Analysis told = ShownRun.Analysis.of(call, 1, CallSpans.TrackKind.COMPUTE);
        assertEquals(new Links(2, false, List.of()), told.links());
        assertEquals(List.of(), told.critical());
        assertEquals(List.of(), told.shares());
    }

    /** Each rank gets every other shard once, whatever way it goes. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"AUTO"},
            mode = EnumSource.Mode.EXCLUDE)
    void asManyBytesTravelAsThePlanSays(Algorithm algorithm) {
        Shards shards = Shards.of(40, 0, 33, 8);
        int groups = 2;
        CallSpans real = Calls.real(algorithm, shards, groups, builder -> builder.chunkRows(8));
        CallSpans simulated = Calls.simulated("Ascend910B1", algorithm, shards, 4);
        long bytesOfA = Math.round(shards.totalRows() * Calls.BYTES_PER_ROW);
        boolean inPlace = algorithm == Algorithm.DIRECT;
        assertEquals((shards.ranks() - 1) * bytesOfA * groups, links(real).bytes());
        assertEquals((shards.ranks() - 1) * bytesOfA, links(simulated).bytes());
        for (CallSpans call : List.of(real, simulated)) {
            Links links = links(call);
            assertEquals(call.worldSize(), links.ranks());
            assertEquals(inPlace, links.inPlace());
            for (Link link : links.links()) {
                assertFalse(link.from() == link.to(), link::toString);
                assertEquals(link.from() / 4, link.to() / 4, "within the group: " + link);
                assertTrue(inPlace ? link.busyNs() == 0 : link.busyNs() >= 0, link::toString);
            }
            for (int rank = 0; rank < call.worldSize(); rank++) {
                int receiver = rank;
                long received =
                        links.links().stream()
                                .filter(link -> link.to() == receiver)
                                .mapToLong(Link::bytes)
                                .sum();
                long own = Math.round(shards.rows(rank % 4) * Calls.BYTES_PER_ROW);
                assertEquals(bytesOfA - own, received, "rank " + rank);
            }
        }
    }

    /** Neighbours alone talk in a ring; in a mesh every pair does. */
    @ParameterizedTest
    @ValueSource(strings = {"ring", "mesh-push", "mesh-pull"})
    void linksAreThoseOfTheAlgorithm(String label) {
        Algorithm algorithm = Algorithm.of(label);
        Links links =
                links(
                        Calls.real(
                                algorithm, Shards.even(64, 4), 1, builder -> builder.chunkRows(8)));
        boolean ring = algorithm == Algorithm.RING;
        assertEquals(ring ? 4 : 12, links.links().size());
        for (Link link : links.links()) {
            assertEquals(2 * (ring ? 3 : 1), link.transfers(), link::toString);
            int steps = Math.floorMod(link.to() - link.from(), 4);
            assertTrue(!ring || steps == 1 || steps == 3, link::toString);
        }
    }
}
