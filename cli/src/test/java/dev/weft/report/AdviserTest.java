package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Each rule on a record made for it, which differs in one thing from one that has no advice. */
class AdviserTest {

    private static List<Advice> advice(RecordMaker maker) {
        return maker.shown().analysis().advice();
    }

    private static List<String> titles(RecordMaker maker) {
        return advice(maker).stream().map(Advice::title).toList();
    }

    /** The only advice has that title, and its reason these words. */
    private static void assertAdvised(RecordMaker maker, String title, String... words) {
        assertEquals(List.of(title), titles(maker));
        String reason = advice(maker).getFirst().reason();
        for (String word : words) {
            assertTrue(reason.contains(word), word + " in " + reason);
        }
    }

    @Test
    void aRunInWhichNothingCostTimeHasNone() {
        assertEquals(List.of(), titles(new RecordMaker()));
    }

    @Test
    void overlapThatCostsMoreThanItHides() {
        RecordMaker slow = new RecordMaker().views(1400, 40, 1500, 1700.0, 1700.0, 1700.0);
        assertAdvised(
                slow,
                "Do not overlap here: --algorithm sequential",
                "Pipelined took 1.700 ms",
                "one after the other 1.500 ms",
                "(40.0 us alone)");
        assertEquals(List.of(), titles(slow.algorithm("sequential", "auto")), "it did not");
        assertEquals(
                List.of(),
                titles(new RecordMaker().views(1400, 40, 1690, 1700.0, 1700.0, 1700.0)),
                "a hair's breadth");
    }

    @Test
    void sumsHaveAdviceOfTheirOwn() {
        RecordMaker slow = new RecordMaker().views(1400, 40, 1500, 1700.0, 1700.0, 1700.0);
        assertAdvised(
                slow.sums("by-rank"),
                "Do not overlap here: --algorithm sequential",
                "the reduction (40.0 us alone)");
        assertEquals(List.of(), titles(slow.sums("whole")), "sequential has other bits");
        assertAdvised(
                new RecordMaker().sums("whole").hosts(4).algorithm("chain", "chain"),
                "Move nothing: --algorithm direct",
                "all parts of K in place");
        assertAdvised(
                new RecordMaker().sums("by-rank").hosts(4).algorithm("mesh-push", "mesh-push"),
                "Let Weft choose: --algorithm auto");
        assertAdvised(
                new RecordMaker().sums("whole").views(400, 1690, 2100, 1700.0, 1700.0, 1700.0),
                "Move fewer bytes, or faster",
                "that is the reduction",
                "More of K on each rank, faster links");
        assertEquals(List.of(), titles(new RecordMaker().sums("whole").late(3, 300_000)));
    }

    @Test
    void rowsThatTravelWithinOneMemory() {
        assertAdvised(
                new RecordMaker().hosts(4).algorithm("mesh-pull", "mesh-pull"),
                "Move nothing: --algorithm direct",
                "192.0 KiB went from rank to rank",
                "88% of its limit");
        assertEquals(List.of(), titles(new RecordMaker().hosts(4)), "auto has tried it");
        assertEquals(List.of(), titles(new RecordMaker().hosts(4).inPlace()), "nothing moved");
        assertEquals(List.of(), titles(new RecordMaker().hosts(4).device("cuda: A GPU").lanes(2)));
        assertEquals(
                List.of("Multiply faster"),
                titles(new RecordMaker().hosts(4).views(1690, 400, 2100, 1700.0, 1700.0, 1700.0)),
                "at the limit no other algorithm helps");
    }

    @Test
    void aRingThatCouldGoBothWays() {
        assertAdvised(
                new RecordMaker().algorithm("ring", "ring"),
                "Halve the path: --algorithm bidirectional-ring",
                "makes 3 hops",
                "it makes 2.");
        assertEquals(
                List.of(),
                titles(new RecordMaker().ranks(2, 1).hosts(1, 1).algorithm("ring", "auto")),
                "one hop is one hop");
    }

    /** Two rings of two ranks: each chunk makes one hop, whichever way. */
    @Test
    void ringsOfTwoHaveNoOtherWayThoughThereAreMoreRanks() {
        assertEquals(List.of(), titles(new RecordMaker().ranks(4, 2).algorithm("ring", "auto")));
    }

    @Test
    void anAlgorithmThatWasAskedFor() {
        assertAdvised(
                new RecordMaker().algorithm("mesh-pull", "mesh-pull"),
                "Let Weft choose: --algorithm auto",
                "mesh-pull was requested",
                "88% of its limit");
    }

    @Test
    void fewChunksAndRanksThatWait() {
        assertAdvised(
                new RecordMaker().waits(60_000),
                "Cut finer: --splits-per-rank 16",
                "in 4 chunks of 30.0 us each",
                "in 10.1% of the call");
        assertEquals(List.of(), titles(new RecordMaker().waits(10_000)), "not worth it");
        assertEquals(
                List.of("Multiply faster"),
                titles(
                        new RecordMaker()
                                .waits(60_000)
                                .views(1690, 400, 2100, 1700.0, 1700.0, 1700.0)),
                "at the limit no cut helps");
        assertEquals(List.of(), titles(new RecordMaker().waits(60_000).inPlace()), "no chunks");
    }

    @Test
    void manyChunksThatAreShort() {
        assertAdvised(
                new RecordMaker().chunks(32, 10_000),
                "Cut coarser: --splits-per-rank 8",
                "A chunk took a median of 10.0 us, 32 chunks a shard");
        assertEquals(List.of(), titles(new RecordMaker().chunks(32, 21_000)), "long enough");
        assertEquals(List.of(), titles(new RecordMaker().chunks(4, 10_000)), "few enough");
    }

    @Test
    void oneLaneThatIsTheBottleneck() {
        assertAdvised(
                new RecordMaker().hosts(4).views(1000, 1500, 2100, 1700.0, 1700.0, 1700.0),
                "Use two lanes: --comm-blocks 2",
                "Transfers alone took 1.500 ms and the product alone 1.000 ms",
                "busy for 23% of the call");
        RecordMaker bound = new RecordMaker().views(1000, 1500, 2100, 1700.0, 1700.0, 1700.0);
        assertEquals(List.of(), titles(bound), "not between hosts");
        assertEquals(List.of(), titles(bound.hosts(4).lanes(2)), "two already");
        assertEquals(List.of(), titles(bound.lanes(1).ranks(2, 1).hosts(2)), "one peer, one lane");
    }

    @Test
    void aRankThatIsLate() {
        assertAdvised(
                new RecordMaker().late(2, 300_000),
                "Look at rank 2",
                "300.0 us after the median rank, 16% of the call");
        assertEquals(List.of(), titles(new RecordMaker().late(2, 100_000)), "by little");
        assertEquals(
                List.of(),
                titles(new RecordMaker().ranks(2, 1).hosts(1, 1).late(1, 300_000)),
                "of two ranks nobody knows which one is right");
    }

    @ParameterizedTest
    @CsvSource({
        "1690,400,Multiply faster,'that is the product: 1.690 ms alone against 400.0 us'",
        "400,1690,'Move fewer bytes, or faster','that is the gather: 1.690 ms alone against'"
    })
    void aCallAtItsLimit(double compute, double comm, String title, String words) {
        assertAdvised(
                new RecordMaker().views(compute, comm, 2100, 1700.0, 1700.0, 1700.0),
                title,
                "at 99% of its limit",
                words);
    }

    /** Where there is no verdict, the only advice is how to get one. */
    @Test
    void samplesThatSpread() {
        RecordMaker noisy =
                new RecordMaker()
                        .waits(60_000)
                        .views(1500, 400, 2100, 1500.0, 1700.0, 2100.0)
                        .iterations(40);
        assertAdvised(noisy, "Measure longer: --iterations 160", "known to +-14% only");
        assertEquals(
                List.of("Cut finer: --splits-per-rank 16"),
                titles(noisy.simulatedOn("trn2")),
                "a prediction has no noise");
        assertAdvised(
                new RecordMaker().views(1690, 400, 2100, 1700.0).iterations(1),
                "Measure longer: --iterations 10",
                "1 rounds are too few");
        assertAdvised(
                new RecordMaker().views(2090, 400, 2100, 1700.0, 1700.0, 1700.0).iterations(10),
                "Measure longer: --iterations 40",
                "seems faster than its limit (122.9% measured: the machine was busy");
    }

    @Test
    void theMostValuableComesFirst() {
        assertEquals(
                List.of(
                        "Do not overlap here: --algorithm sequential",
                        "Move nothing: --algorithm direct",
                        "Cut finer: --splits-per-rank 16",
                        "Look at rank 1"),
                titles(
                        new RecordMaker()
                                .hosts(4)
                                .algorithm("mesh-pull", "mesh-pull")
                                .waits(60_000)
                                .late(1, 400_000)
                                .views(1200, 400, 1300, 1700.0, 1700.0, 1700.0)));
    }
}
