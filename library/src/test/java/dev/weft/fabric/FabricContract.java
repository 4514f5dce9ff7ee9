package dev.weft.fabric;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** What every fabric promises while all goes well; {@link FabricFailureContract} has the rest. */
abstract class FabricContract {

    private static final Duration LONG = Duration.ofSeconds(60);

    /** How the ranks of this kind of fabric are run. */
    abstract RankRunner runner();

    private void run(int ranks, Ranks.Body body) {
        run(ranks, LONG, body);
    }

    private void run(int ranks, Duration deadline, Ranks.Body body) {
        runner().run(ranks, deadline, body).assertNoFailure();
    }

    @Test
    void ranksAreNumberedAndKnowTheirWorld() {
        run(
                5,
                fabric -> {
                    assertEquals(5, fabric.size());
                    assertEquals(runner().kind(), fabric.kind());
                    assertEquals(LONG, fabric.deadline());
                    assertTrue(fabric.sharesMemory());
                    long[] ranks = fabric.exchange(fabric.rank());
                    for (int r = 0; r < ranks.length; r++) {
                        assertEquals(r, ranks[r]);
                        assertEquals(r, fabric.worldRank(r));
                    }
                });
    }

    @Test
    void everyRankGetsTheBytesItAskedForZeroedOnAPageAndVisibleToAll() {
        run(
                4,
                fabric -> {
                    for (long unit : new long[] {0, 1, 4095, 70_000}) {
                        long mine = unit * fabric.rank();
                        try (Region region = fabric.allocate(mine)) {
                            for (int r = 0; r < fabric.size(); r++) {
                                MemorySegment part = region.part(r);
                                assertEquals(unit * r, part.byteSize());
                                assertEquals(0, part.address() % 4096);
                                assertTrue(isFilledWith(part, (byte) 0), "zero at first");
                            }
                            fabric.barrier();
                            region.part(fabric.rank()).fill((byte) (fabric.rank() + 1));
                            fabric.barrier();
                            for (int r = 0; r < fabric.size(); r++) {
                                assertTrue(isFilledWith(region.part(r), (byte) (r + 1)));
                            }
                        }
                    }
                });
    }

    private static boolean isFilledWith(MemorySegment part, byte value) {
        for (long i = 0; i < part.byteSize(); i++) {
            if (part.get(ValueLayout.JAVA_BYTE, i) != value) {
                return false;
            }
        }
        return true;
    }

    @Test
    void memoryIsFreedOnceEveryRankHasLetGoOfIt() {
        run(
                3,
                fabric -> {
                    Region region = fabric.allocate(1000);
                    MemorySegment part = region.part(0);
                    fabric.barrier();
                    assertTrue(part.scope().isAlive());
                    region.close();
                    region.close();
                    fabric.barrier();
                    assertFalse(part.scope().isAlive());
                });
    }

    @Test
    void aRegionOutlivesThePeersWhoLetGoOfIt() {
        run(
                3,
                fabric -> {
                    Region region = fabric.allocate(64);
                    region.part(fabric.rank()).set(ValueLayout.JAVA_INT, 0, 7);
                    fabric.barrier();
                    if (fabric.rank() != 1) {
                        region.close();
                    }
                    fabric.barrier();
                    if (fabric.rank() == 1) {
                        for (int r = 0; r < 3; r++) {
                            assertEquals(7, region.part(r).get(ValueLayout.JAVA_INT, 0));
                        }
                        region.close();
                    }
                });
    }

    @Test
    void badArgumentsAreRefusedWithTheirValues() {
        run(
                2,
                fabric -> {
                    String size = messageOf(() -> fabric.allocate(-1));
                    assertEquals("a region of -1 bytes: expected zero or more", size);
                    assertTrue(messageOf(() -> fabric.split(3)).contains("2 ranks"));
                    fabric.barrier();
                });
    }

    private static String messageOf(org.junit.jupiter.api.function.Executable action) {
        return assertThrows(IllegalArgumentException.class, action).getMessage();
    }

    @Test
    void exchangesAndBarriersInAnyMixGiveEveryRanksValue() {
        long seed = 91;
        run(
                4,
                fabric -> {
                    Random random = new Random(seed);
                    for (int i = 0; i < 1000; i++) {
                        if (random.nextInt(3) == 0) {
                            fabric.barrier();
                            continue;
                        }
                        long[] expected = random.longs(fabric.size()).toArray();
                        long[] values = fabric.exchange(expected[fabric.rank()]);
                        assertArrayEquals(expected, values, "exchange " + i + ", seed " + seed);
                    }
                });
    }

    /** Plain stores before a barrier are seen by plain loads after it, and never too early. */
    @Test
    void manyBarriersHoldEveryRankBack() {
        run(
                4,
                fabric -> {
                    try (Region region = fabric.allocate(Long.BYTES)) {
                        for (long i = 1; i <= 1500; i++) {
                            region.part(fabric.rank()).set(ValueLayout.JAVA_LONG, 0, i);
                            fabric.barrier();
                            for (int r = 0; r < fabric.size(); r++) {
                                long seen = region.part(r).get(ValueLayout.JAVA_LONG, 0);
                                assertEquals(i, seen, "rank " + r);
                            }
                            fabric.barrier();
                        }
                    }
                });
    }

    private static final long TOKEN_AT = 0;
    private static final long DATA_AT = 256;
    private static final int DATA_LONGS = 32;

    /** A token goes round with data that each rank checks, changes and hands on. */
    @Test
    void whatWasWrittenBeforeASignalIsSeenAfterTheWait() {
        passTokenRound(1500, 0);
    }

    @Test
    void valuesMayPassTheEndOfTheIntRange() {
        passTokenRound(40, Integer.MAX_VALUE - 20);
        passTokenRound(40, -20);
    }

    private void passTokenRound(int rounds, int start) {
        run(
                3,
                fabric -> {
                    try (Region region = fabric.allocate(DATA_AT + DATA_LONGS * Long.BYTES)) {
                        int rank = fabric.rank();
                        // Words are zero at first: bring them to the start of the count.
                        fabric.signal(region, rank, TOKEN_AT, start);
                        fabric.barrier();
                        for (int i = 1; i <= rounds; i++) {
                            if (rank != 0 || i > 1) {
                                Awaited what = Awaited.of("the token", (rank + 2) % 3);
                                int value = rank == 0 ? start + i - 1 : start + i;
                                fabric.await(region, rank, TOKEN_AT, value, what);
                                assertTrue(fabric.reached(region, rank, TOKEN_AT, value));
                                checkData(region.part(rank), rank == 0 ? i - 1 : i);
                            }
                            int next = (rank + 1) % 3;
                            fillData(region.part(next), i);
                            assertFalse(fabric.reached(region, next, TOKEN_AT, start + i));
                            fabric.signal(region, next, TOKEN_AT, start + i);
                        }
                        fabric.barrier();
                    }
                });
    }

    private static void fillData(MemorySegment part, long value) {
        for (int k = 0; k < DATA_LONGS; k++) {
            part.set(ValueLayout.JAVA_LONG, DATA_AT + 8L * k, value * 31 + k);
        }
    }

    private static void checkData(MemorySegment part, long value) {
        for (int k = 0; k < DATA_LONGS; k++) {
            assertEquals(value * 31 + k, part.get(ValueLayout.JAVA_LONG, DATA_AT + 8L * k));
        }
    }

    @Test
    void severalThreadsOfARankMayWaitForAndSignalWordsOfOnePart() {
        run(
                2,
                fabric -> {
                    try (Region region = fabric.allocate(4096)) {
                        ThreadGroupRun threads = new ThreadGroupRun();
                        for (int t = 0; t < 4; t++) {
                            long own = 128L * t;
                            int peer = 1 - fabric.rank();
                            threads.start(
                                    () -> {
                                        Awaited what = Awaited.of("a turn", peer);
                                        for (int i = 1; i <= 300; i++) {
                                            fabric.signal(region, peer, own, i);
                                            fabric.await(region, fabric.rank(), own, i, what);
                                        }
                                    });
                        }
                        threads.join();
                        fabric.barrier();
                    }
                });
    }

    @Test
    void partsGatherOnTheirOwnAndNameRanksByTheWorld() {
        run(
                6,
                fabric -> {
                    try (Transport half = fabric.split(2);
                            Transport third = fabric.split(3)) {
                        assertEquals(3, half.size());
                        assertEquals(fabric.rank() % 3, half.rank());
                        assertEquals(2, third.size());
                        for (int i = 0; i < 50; i++) {
                            assertOwnRanks(fabric, half, i);
                            assertOwnRanks(fabric, third, i);
                        }
                        try (Transport alone = half.split(3)) {
                            assertOwnRanks(fabric, alone, 0);
                        }
                        fabric.barrier();
                    }
                });
    }

    @Test
    void anyListsOfRanksAreGroups() {
        ReplicaGroups groups = ReplicaGroups.parse("4,0/5,1,3");
        run(
                6,
                fabric -> {
                    try (Transport part = fabric.split(groups)) {
                        List<Integer> members =
                                switch (fabric.rank()) {
                                    case 0, 4 -> List.of(4, 0);
                                    case 2 -> List.of(2);
                                    default -> List.of(5, 1, 3);
                                };
                        assertEquals(members.size(), part.size());
                        for (int r = 0; r < part.size(); r++) {
                            assertEquals(members.get(r), part.worldRank(r));
                        }
                        assertOwnRanks(fabric, part, 1);
                        try (Region region = part.allocate(64)) {
                            int next = (part.rank() + 1) % part.size();
                            int previous = (part.rank() + part.size() - 1) % part.size();
                            region.part(part.rank()).set(ValueLayout.JAVA_INT, 32, fabric.rank());
                            part.signal(region, next, 0, 1);
                            Awaited what = Awaited.chunk(previous, previous, 0);
                            part.await(region, part.rank(), 0, 1, what);
                            assertEquals(
                                    part.worldRank(previous),
                                    region.part(previous).get(ValueLayout.JAVA_INT, 32));
                            part.barrier();
                        }
                        fabric.barrier();
                    }
                });
    }

    @Test
    void groupsThatTheFabricDoesNotHaveAreRefused() {
        run(
                2,
                fabric -> {
                    String missing = messageOf(() -> fabric.split(ReplicaGroups.parse("0,1/2")));
                    assertEquals(
                            "rank 2 in replica groups 0,1/2: expected ranks 0 to 1, which the world has",
                            missing);
                    fabric.barrier();
                });
    }

    @Test
    void ranksThatGiveUnlikeGroupsAreNamed() {
        run(
                2,
                fabric -> {
                    String own = fabric.rank() == 0 ? "0,1" : "1,0";
                    String message = messageOf(() -> fabric.split(ReplicaGroups.parse(own)));
                    assertEquals(
                            "ranks 0 and 1 give unlike replica groups, this rank %s: expected the same on every rank"
                                    .formatted(own),
                            message);
                    fabric.barrier();
                });
    }

    private static void assertOwnRanks(Transport world, Transport part, int round) {
        assertEquals(world.rank(), part.worldRank(part.rank()));
        long[] values = part.exchange(world.rank() + 10L * round);
        for (int r = 0; r < part.size(); r++) {
            assertEquals(part.worldRank(r) + 10L * round, values[r]);
        }
    }

    /** Two parts of the same cut are different parts: their memory must not be mixed up. */
    @Test
    void theSameCutTwiceGivesSeparateParts() {
        run(
                4,
                fabric -> {
                    try (Transport one = fabric.split(2);
                            Transport two = fabric.split(2)) {
                        for (int i = 0; i < 40; i++) {
                            try (Region first = one.allocate(8);
                                    Region second = two.allocate(16)) {
                                assertEquals(8, first.part(1 - one.rank()).byteSize());
                                assertEquals(16, second.part(1 - one.rank()).byteSize());
                            }
                        }
                        fabric.barrier();
                    }
                });
    }

    /** The worker needs longer than the deadline, but keeps telling that it gets on. */
    @Test
    void slowIsNotDead() {
        Duration deadline = Duration.ofMillis(600);
        run(
                2,
                deadline,
                fabric -> {
                    try (Region region = fabric.allocate(64)) {
                        if (fabric.rank() == 0) {
                            Awaited what = Awaited.chunk(1, 1, 0);
                            fabric.await(region, 0, 0, 1, what);
                        } else {
                            workFor(fabric, deadline.multipliedBy(2));
                            fabric.signal(region, 0, 0, 1);
                        }
                        fabric.barrier();
                    }
                });
    }

    /** The same for who waits for another thread of its own rank, while no peer does anything. */
    @Test
    void ownSlowWorkIsNotDeadEither() {
        Duration deadline = Duration.ofMillis(600);
        run(
                1,
                deadline,
                fabric -> {
                    try (Region region = fabric.allocate(64)) {
                        ThreadGroupRun worker = new ThreadGroupRun();
                        worker.start(
                                () -> {
                                    workFor(fabric, deadline.multipliedBy(2));
                                    fabric.signal(region, 0, 0, 1);
                                });
                        fabric.await(region, 0, 0, 1, Awaited.chunk(0, 0, 0));
                        worker.join();
                    }
                });
    }

    private static void workFor(Transport fabric, Duration time) {
        long end = System.nanoTime() + time.toNanos();
        while (System.nanoTime() < end) {
            fabric.worked();
            LockSupport.parkNanos(1_000_000);
        }
    }

    @Test
    void aWorldServesSeveralRunsOfWaitsInARow() {
        run(
                3,
                fabric -> {
                    for (int i = 0; i < 20; i++) {
                        try (Region region = fabric.allocate(128)) {
                            int next = (fabric.rank() + 1) % 3;
                            fabric.signal(region, next, 0, i + 1);
                            Awaited what = Awaited.of("a neighbour", (fabric.rank() + 2) % 3);
                            fabric.await(region, fabric.rank(), 0, i + 1, what);
                        }
                    }
                    fabric.close();
                    fabric.close();
                });
    }
}
