package dev.weft.fabric.mpi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.ThreadGroupRun;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * One rank under mpirun that tries out what {@link Transport} promises, for {@link MpiFabricIT}.
 * Every check that has passed adds one to the number in its last line.
 */
final class MpiFabricChild {

    private static final long DATA_AT = Region.WORDS_BYTES;
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    private final Transport fabric;
    private final int rank;
    private final int size;

    /** The next rank on another host, and the one for which this one is that. */
    private final int after;

    private final int before;
    private int passed;

    private MpiFabricChild(Transport fabric) {
        this.fabric = fabric;
        this.rank = fabric.rank();
        this.size = fabric.size();
        int perHost = fabric.hosts().size(0);
        this.after = (rank + perHost) % size;
        this.before = (rank + size - perHost) % size;
    }

    public static void main(String[] args) {
        try (World world = World.mpi(Duration.ofSeconds(30))) {
            world.run(
                    given -> {
                        Transport fabric = Transport.of(given);
                        MpiFabricChild child = new MpiFabricChild(fabric);
                        child.all(args[0]);
                        System.out.println("passed " + child.passed);
                    });
        }
    }

    private void all(String hosts) {
        knowsItsWorld(hosts);
        exchangesAndBarriersMix(fabric, 400);
        seesPublishedWordsAndGetsWhatWasWrittenBefore();
        seesWhatWasMovedBeforeASignal(4, 60);
        seesWordsPastTheIntRange();
        movesRectanglesOfAnyShape();
        countsMovesFromSeveralRanks();
        letsPeersUseWhatItLetGoOf();
        splits();
        splitsIntoAnyGroups();
    }

    private void knowsItsWorld(String hosts) {
        require(fabric.kind().equals("mpi"), fabric.kind());
        require(fabric.hosts().toString().equals(hosts), fabric.hosts() + " for " + hosts);
        require(!fabric.sharesMemory(), "one host");
        require(fabric.worldSize() == size, "a world of " + fabric.worldSize());
        long[] ranks = fabric.exchange(rank);
        for (int r = 0; r < size; r++) {
            require(ranks[r] == r && fabric.worldRank(r) == r, Arrays.toString(ranks));
        }
        require(fabric.ownCpuNs() > 0, "the progress thread takes no time");
        passed++;
    }

    private void exchangesAndBarriersMix(Transport group, int rounds) {
        Random random = new Random(91);
        for (int i = 0; i < rounds; i++) {
            if (random.nextInt(3) == 0) {
                group.barrier();
                continue;
            }
            long[] expected = random.longs(group.size()).toArray();
            long[] values = group.exchange(expected[group.rank()]);
            require(Arrays.equals(expected, values), "exchange " + i);
        }
        passed++;
    }

    private void seesPublishedWordsAndGetsWhatWasWrittenBefore() {
        int bytes = 5000;
        AtomicInteger ended = new AtomicInteger();
        try (Region region = fabric.allocate(DATA_AT + 2 * bytes);
                ChunkMover mover = fabric.mover(index -> ended.incrementAndGet())) {
            MemorySegment part = region.part(rank);
            Move get = move(region, after, DATA_AT, rank, DATA_AT + bytes, bytes, 128);
            for (int i = 1; i <= 100; i++) {
                part.asSlice(DATA_AT, bytes).fill((byte) (i + rank));
                fabric.publish(region, 0, i);
                fabric.await(region, after, 0, i, Awaited.of("news", after));
                require(fabric.reached(region, after, 0, i), "reached after the wait");
                mover.move(0, get, i, 0);
                mover.awaitAll();
                require(ended.get() == i, ended + " of " + i + " moves told of");
                require(fabric.reached(region, rank, 128, i), "a flag after its move's end");
                requireFilled(part.asSlice(DATA_AT + bytes, bytes), i + after);
                // Who has got it says so, and only then is it written again.
                fabric.publish(region, 64, i);
                fabric.await(region, before, 64, i, Awaited.of("thanks", before));
            }
            fabric.barrier();
        }
        passed++;
    }

    /** Each thread has its mover, its places and its words. */
    private void seesWhatWasMovedBeforeASignal(int threads, int rounds) {
        int bytes = 70_000;
        try (Region region = fabric.allocate(DATA_AT + 2L * threads * bytes)) {
            ThreadGroupRun run = new ThreadGroupRun();
            for (int t = 0; t < threads; t++) {
                long words = 512L * t;
                long from = DATA_AT + (long) t * bytes;
                long to = DATA_AT + (long) (threads + t) * bytes;
                int thread = t;
                run.start(() -> pushAndSignal(region, words, from, to, bytes, thread, rounds));
            }
            run.join();
            fabric.barrier();
        }
        passed++;
    }

    private void pushAndSignal(
            Region region, long words, long from, long to, int bytes, int thread, int rounds) {
        MemorySegment part = region.part(rank);
        Awaited data = Awaited.of("data", before);
        Awaited credit = Awaited.of("a credit", after);
        // In three rectangles, of which the second has gaps.
        int row = bytes / 100;
        Move[] moves = {
            move(region, rank, from, after, to, 20L * row, words + 4),
            new Move(
                    region,
                    rank,
                    from + 20L * row,
                    row,
                    after,
                    to + 20L * row,
                    row,
                    60,
                    row - 1,
                    words + 8,
                    -1),
            move(region, rank, from + 80L * row, after, to + 80L * row, 20L * row, words + 12),
        };
        try (ChunkMover mover = fabric.mover(index -> {})) {
            for (int i = 1; i <= rounds; i++) {
                int value = i * 7 + thread;
                part.asSlice(from, bytes).fill((byte) (value + rank));
                for (int m = 0; m < moves.length; m++) {
                    mover.move(m, moves[m], i, 0);
                }
                fabric.signal(region, after, words, i);
                fabric.await(region, rank, words, i, data);
                for (int r = 0; r < 100; r++) {
                    long length = r >= 20 && r < 80 ? row - 1 : row;
                    requireFilled(part.asSlice(to + (long) r * row, length), value + before);
                }
                fabric.signal(region, before, words + 256, i);
                fabric.await(region, rank, words + 256, i, credit);
                mover.awaitAll();
            }
        }
    }

    private void seesWordsPastTheIntRange() {
        try (Region region = fabric.allocate(DATA_AT)) {
            for (int start : new int[] {Integer.MAX_VALUE - 20, -20}) {
                fabric.publish(region, 0, start);
                fabric.signal(region, after, 64, start);
                fabric.barrier();
                for (int i = start; i != start + 40; i++) {
                    require(!fabric.reached(region, rank, 64, i + 1), "a word too early");
                    // Before the next signal: a rank that runs ahead would set the word past it.
                    fabric.barrier();
                    fabric.publish(region, 0, i + 1);
                    fabric.signal(region, after, 64, i + 1);
                    fabric.await(region, before, 0, i + 1, Awaited.of("a number", before));
                    fabric.await(region, rank, 64, i + 1, Awaited.of("a number", before));
                    fabric.barrier();
                }
            }
        }
        passed++;
    }

    /** Puts and gets of random rectangles; what lies around them stays as it was. */
    private void movesRectanglesOfAnyShape() {
        int bytes = 20_000;
        Random random = new Random(7);
        try (Region region = fabric.allocate(DATA_AT + 2 * bytes);
                ChunkMover mover = fabric.mover(index -> {})) {
            MemorySegment part = region.part(rank);
            for (int i = 1; i <= 60; i++) {
                int rows = random.nextInt(40);
                int rowBytes = random.nextInt(200);
                int fromPitch = rowBytes + random.nextInt(2) * random.nextInt(100);
                int toPitch = rowBytes + random.nextInt(2) * random.nextInt(100);
                boolean put = random.nextBoolean();
                new Random(i * 31L + rank).ints(bytes).forEach(new Filler(part, DATA_AT)::add);
                part.asSlice(DATA_AT + bytes, bytes).fill((byte) i);
                fabric.barrier();
                int from = put ? rank : after;
                int to = put ? after : rank;
                Move move =
                        new Move(
                                region,
                                from,
                                DATA_AT,
                                fromPitch,
                                to,
                                DATA_AT + bytes,
                                toPitch,
                                rows,
                                rowBytes,
                                0,
                                64);
                mover.move(0, move, i, 3 * i);
                mover.awaitAll();
                int writer = put ? before : after;
                fabric.await(region, rank, 64, 3 * i, Awaited.of("a rectangle", writer));
                require(fabric.reached(region, rank, 0, i), "the flag is set first");
                byte[] expected = new byte[bytes];
                Arrays.fill(expected, (byte) i);
                byte[] sent = bytes(new Random(i * 31L + writer), bytes);
                for (int r = 0; r < rows; r++) {
                    System.arraycopy(sent, r * fromPitch, expected, r * toPitch, rowBytes);
                }
                MemorySegment landed = part.asSlice(DATA_AT + bytes, bytes);
                require(landed.mismatch(MemorySegment.ofArray(expected)) < 0, "rectangle " + i);
                fabric.barrier();
            }
        }
        passed++;
    }

    private static byte[] bytes(Random random, int count) {
        byte[] bytes = new byte[count];
        random.ints(count).forEach(new Filler(MemorySegment.ofArray(bytes), 0)::add);
        return bytes;
    }

    /** Takes numbers, keeps a byte of each. */
    private static final class Filler {
        private final MemorySegment memory;
        private long at;

        Filler(MemorySegment memory, long at) {
            this.memory = memory;
            this.at = at;
        }

        void add(int value) {
            memory.set(JAVA_BYTE, at++, (byte) value);
        }
    }

    /** One counter for gets from all others in turn: it never runs ahead of a flag. */
    private void countsMovesFromSeveralRanks() {
        int bytes = 3000;
        try (Region region = fabric.allocate(DATA_AT + (long) (1 + size) * bytes);
                ChunkMover mover = fabric.mover(index -> {})) {
            region.part(rank).asSlice(DATA_AT, bytes).fill((byte) (rank + 1));
            fabric.barrier();
            int count = 0;
            for (int round = 1; round <= 20; round++) {
                for (int r = 0; r < size; r++) {
                    Move get =
                            new Move(
                                    region,
                                    r,
                                    DATA_AT,
                                    bytes,
                                    rank,
                                    DATA_AT + (1L + r) * bytes,
                                    bytes,
                                    1,
                                    bytes,
                                    256 + 64L * r,
                                    0);
                    mover.move(r, get, round, ++count);
                    if (fabric.reached(region, rank, 0, count)) {
                        require(fabric.reached(region, rank, 256 + 64L * r, round), "a flag");
                    }
                }
                fabric.await(region, rank, 0, count, Awaited.of("all", rank));
                for (int r = 0; r < size; r++) {
                    requireFilled(
                            region.part(rank).asSlice(DATA_AT + (1L + r) * bytes, bytes), r + 1);
                }
            }
            mover.awaitAll();
            fabric.barrier();
        }
        passed++;
    }

    /** Sizes differ by rank. Rank 0 gets from a part that its owner has long let go of. */
    private void letsPeersUseWhatItLetGoOf() {
        Region region = fabric.allocate(DATA_AT + 10_000L * (rank + 1));
        MemorySegment part = region.part(rank);
        require(part.byteSize() == DATA_AT + 10_000L * (rank + 1), "a part of its own size");
        part.asSlice(DATA_AT).fill((byte) 5);
        if (rank > 0) {
            fabric.barrier();
            region.close();
            region.close();
            fabric.barrier();
        } else {
            fabric.barrier();
            fabric.barrier();
            requireRefused(region);
            try (ChunkMover mover = fabric.mover(index -> {})) {
                for (int i = 1; i <= 20; i++) {
                    part.asSlice(DATA_AT).fill((byte) 0);
                    mover.move(0, move(region, after, DATA_AT, 0, DATA_AT, 10_000, 0), i, 0);
                    mover.awaitAll();
                    requireFilled(part.asSlice(DATA_AT), 5);
                }
            }
            region.close();
        }
        fabric.barrier();
        long start = System.nanoTime();
        while (part.scope().isAlive()) {
            require(System.nanoTime() - start < PATIENCE_NS, "memory that nobody holds");
            Thread.yield();
        }
        passed++;
    }

    private void requireRefused(Region region) {
        try {
            MemorySegment there = region.part(after);
            throw new AssertionError("the part of rank " + after + ": " + there);
        } catch (IllegalStateException e) {
            BitSet here = new BitSet();
            here.set(0, fabric.hosts().size(0));
            String expected =
                    "the part of rank %s is on another host: mapped are those of ranks %s"
                            .formatted(after, here);
            require(e.getMessage().equals(expected), e.getMessage());
        }
    }

    private void splits() {
        int groups = size % 2 == 0 ? 2 : size;
        try (Transport part = fabric.split(groups);
                Transport same = fabric.split(groups)) {
            require(part.size() == size / groups, "a group of " + part.size());
            require(part.worldRank(part.rank()) == rank, "rank " + part.rank());
            exchangesAndBarriersMix(part, 100);
            try (Region one = part.allocate(8);
                    Region two = same.allocate(16)) {
                require(one.part(part.rank()).byteSize() == 8, "regions mixed up");
                require(two.part(part.rank()).byteSize() == 16, "regions mixed up");
                part.barrier();
            }
            fabric.barrier();
        }
        passed++;
    }

    /** Even ranks backwards and odd ranks but the last, which is alone; then hosts in turns. */
    private void splitsIntoAnyGroups() {
        List<Integer> even = IntStream.range(0, size).filter(r -> r % 2 == 0).boxed().toList();
        List<Integer> odd = IntStream.range(0, size).filter(r -> r % 2 == 1).boxed().toList();
        List<Integer> fewer = odd.subList(0, odd.size() - 1);
        movesIn(
                new ReplicaGroups(
                        fewer.isEmpty()
                                ? List.of(even.reversed())
                                : List.of(even.reversed(), fewer)));
        movesIn(
                new ReplicaGroups(
                        List.of(Stream.concat(even.stream(), odd.reversed().stream()).toList())));
        passed++;
    }

    private void movesIn(ReplicaGroups groups) {
        try (Transport part = fabric.split(groups)) {
            List<Integer> members = groups.with(rank);
            require(part.size() == members.size(), "a group of " + part.size());
            for (int r = 0; r < part.size(); r++) {
                require(part.worldRank(r) == members.get(r), "rank " + r + " of the group");
            }
            exchangesAndBarriersMix(part, 50);
            try (Region region = part.allocate(DATA_AT + 128)) {
                int self = part.rank();
                int next = (self + 1) % part.size();
                int previous = (self + part.size() - 1) % part.size();
                region.part(self).asSlice(DATA_AT, 64).fill((byte) rank);
                ChunkMover mover = part.mover(index -> {});
                mover.move(0, move(region, self, DATA_AT, next, DATA_AT + 64, 64, 0), 1, 0);
                part.await(region, self, 0, 1, Awaited.chunk(previous, previous, 0));
                requireFilled(
                        region.part(self).asSlice(DATA_AT + 64, 64), part.worldRank(previous));
                mover.awaitAll();
                part.barrier();
                mover.close();
            }
            fabric.barrier();
        }
    }

    private static Move move(
            Region region, int from, long fromAt, int to, long toAt, long bytes, long flagAt) {
        return new Move(region, from, fromAt, bytes, to, toAt, bytes, 1, bytes, flagAt, -1);
    }

    private static void requireFilled(MemorySegment memory, int value) {
        for (long i = 0; i < memory.byteSize(); i++) {
            byte seen = memory.get(JAVA_BYTE, i);
            if (seen != (byte) value) {
                throw new AssertionError("byte " + i + " is " + seen + ", not " + (byte) value);
            }
        }
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }
}
