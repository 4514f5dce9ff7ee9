package dev.weft.fabric.mpi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * One rank under mpirun whose world comes to some end, for {@link MpiFabricIT}. It ends with 0 and
 * the line {@code ended well}, or with 3 and a line {@code ended CLASS PEER MESSAGE}.
 */
final class MpiEndChild {

    private static final int ENDED_BY_A_PEER = 3;
    private static final long DATA_AT = Region.WORDS_BYTES;

    private MpiEndChild() {}

    public static void main(String[] args) {
        int code = 0;
        try (World world = World.mpi(Duration.ofMillis(Long.parseLong(args[1])))) {
            world.run(fabric -> run(Transport.of(fabric), args[0]));
            System.out.println("ended " + (args[0].equals("renewed") ? refusal(world) : "well"));
        } catch (FabricException e) {
            code = ENDED_BY_A_PEER;
        }
        System.exit(code);
    }

    private static String refusal(World world) {
        try {
            world.renew();
            return "renewed";
        } catch (UnsupportedOperationException e) {
            return e.getMessage();
        }
    }

    private static void run(Transport fabric, String what) {
        try {
            switch (what) {
                case "early" -> leavesWhileAnotherIsWaitedFor(fabric);
                case "late" -> worksOnAfterTheOthersLeft(fabric);
                case "awaited" -> leavesThoughAwaited(fabric);
                case "throws" -> throwsAmongMoves(fabric);
                case "moves" -> movesToAll(fabric);
                case "huge" -> movesMoreThanAnIntCounts(fabric);
                case "renewed" -> fabric.barrier();
                default -> throw new IllegalArgumentException(what);
            }
        } catch (FabricException e) {
            // Told at once: a launcher may end all ranks when the first one has ended.
            String kind = e.getClass().getSimpleName();
            System.out.println("ended " + kind + " " + e.peer() + " " + e.getMessage());
            throw e;
        }
    }

    /** Rank 2 has all it needs and leaves, while rank 0 still has something to send to rank 1. */
    private static void leavesWhileAnotherIsWaitedFor(Transport fabric) {
        long bytes = 400L << 20;
        boolean large = fabric.rank() < 2;
        Region region = fabric.allocate(DATA_AT + (large ? bytes : 64));
        if (fabric.rank() == 0) {
            try (ChunkMover mover = fabric.mover(index -> {})) {
                mover.move(0, move(region, 1, bytes), 1, 0);
                mover.move(1, move(region, 2, 64), 1, 0);
                mover.awaitAll();
            }
        } else {
            fabric.await(region, fabric.rank(), 0, 1, Awaited.of("a rectangle", 0));
        }
        region.close();
    }

    private static Move move(Region region, int to, long bytes) {
        return new Move(region, 0, DATA_AT, bytes, to, DATA_AT, bytes, 1, bytes, 0, -1);
    }

    /** For longer than the deadline, but it says so; and then needs memory of its host. */
    private static void worksOnAfterTheOthersLeft(Transport fabric) {
        try (Transport part = fabric.split(2)) {
            if (fabric.rank() < fabric.size() / 2) {
                return;
            }
            long end = System.nanoTime() + fabric.deadline().toNanos() * 3 / 2;
            while (part.exchange(System.nanoTime() < end ? 1 : 0)[0] == 1) {
                part.worked();
            }
            part.allocate(DATA_AT).close();
        }
    }

    private static void leavesThoughAwaited(Transport fabric) {
        Region region = fabric.allocate(64);
        if (fabric.rank() != 1) {
            fabric.await(region, fabric.rank(), 0, 9, Awaited.chunk(1, 1, 4));
        }
    }

    /** Large rectangles are under way between all ranks when the last one gives up. */
    private static void throwsAmongMoves(Transport fabric) {
        long bytes = 24L << 20;
        int size = fabric.size();
        int to = (fabric.rank() + 1) % size;
        try (Region region = fabric.allocate(DATA_AT + 2 * bytes);
                ChunkMover mover = fabric.mover(index -> {})) {
            Move move =
                    new Move(
                            region,
                            fabric.rank(),
                            DATA_AT,
                            bytes,
                            to,
                            DATA_AT + bytes,
                            bytes,
                            1,
                            bytes,
                            0,
                            -1);
            for (int i = 1; i < 1000; i++) {
                mover.move(0, move, i, 0);
                if (i == 20 && fabric.rank() == size - 1) {
                    throw new IllegalStateException("the press broke");
                }
            }
            mover.awaitAll();
            fabric.barrier();
        }
    }

    /** Rank 0 moves to all others, in turn and without end. */
    private static void movesToAll(Transport fabric) {
        long bytes = 1L << 20;
        try (Region region = fabric.allocate(DATA_AT + bytes);
                ChunkMover mover = fabric.mover(index -> {})) {
            region.part(fabric.rank()).set(JAVA_BYTE, DATA_AT, (byte) 1);
            fabric.barrier();
            int rank = fabric.rank();
            System.out.println("running " + rank + " " + ProcessHandle.current().pid());
            // No wait: it might give rank 0 up before that one gives up another.
            while (rank > 0 && !fabric.reached(region, rank, 0, Integer.MAX_VALUE)) {
                LockSupport.parkNanos(1_000_000);
            }
            for (int i = 1; rank == 0; i = i % 1000 + 1) {
                mover.move(0, move(region, 1 + i % (fabric.size() - 1), bytes), i, 0);
            }
        }
    }

    /** In one move, the other way round in a second one that has gaps. */
    private static void movesMoreThanAnIntCounts(Transport fabric) {
        long row = 1_000_003;
        long rows = 2 + (1L << 31) / row;
        long pitch = row + 5;
        long bytes = rows * pitch;
        int rank = fabric.rank();
        try (Region region = fabric.allocate(DATA_AT + bytes);
                ChunkMover mover = fabric.mover(index -> {})) {
            MemorySegment data = region.part(rank).asSlice(DATA_AT, bytes);
            long[] places = {0, row - 1, pitch, bytes / 2 / pitch * pitch, bytes - pitch + row - 1};
            for (int i = 0; rank == 0 && i < places.length; i++) {
                data.set(JAVA_BYTE, places[i], (byte) (i + 1));
            }
            fabric.barrier();
            if (rank == 1) {
                mover.move(0, pull(region, 0, bytes, 1, bytes, 1, bytes), 1, 0);
                mover.awaitAll();
                requireAt(data, places, 0);
                for (int i = 0; i < places.length; i++) {
                    data.set(JAVA_BYTE, places[i], (byte) (i + 50));
                }
                // Between rows: these bytes do not travel.
                data.set(JAVA_BYTE, row + 2, (byte) 99);
            }
            fabric.barrier();
            if (rank == 0) {
                mover.move(1, pull(region, 1, pitch, 0, pitch, rows, row), 1, 0);
                mover.awaitAll();
                requireAt(data, places, 49);
                require(data.get(JAVA_BYTE, row + 2) == 0, "a byte between the rows");
            }
            fabric.barrier();
        }
    }

    private static Move pull(
            Region region, int from, long fromPitch, int to, long toPitch, long rows, long row) {
        return new Move(region, from, DATA_AT, fromPitch, to, DATA_AT, toPitch, rows, row, 0, -1);
    }

    private static void requireAt(MemorySegment data, long[] places, int add) {
        for (int i = 0; i < places.length; i++) {
            byte seen = data.get(JAVA_BYTE, places[i]);
            require(seen == i + 1 + add, "byte " + places[i] + " is " + seen);
        }
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalStateException("wrong: " + otherwise);
        }
    }
}
