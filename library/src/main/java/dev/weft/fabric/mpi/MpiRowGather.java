package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.ffi.Mpi;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An all-gather by MPI_Allgatherv, as a program without Weft would call it. The progress thread
 * makes the call, and sends and receives nothing else in the meantime.
 */
final class MpiRowGather implements RowGather {

    /** The most bytes that all ranks gather in one call; between calls messages are served. */
    private static final long SLICE_BYTES = 64L << 20;

    /** Whether one is running in this process: MPI can be in one collective call at a time. */
    private static final AtomicBoolean UNDER_WAY = new AtomicBoolean();

    private final Mpi mpi;
    private final MpiProgress progress;
    private final MpiFabric fabric;
    private final Awaited done;

    /** A region of this rank alone, with the number of tasks done. */
    private final MemoryRegion words;

    private int tasks;

    private final Deque<Long> spare;

    /** The operator's own communicator, so that messages of operators are not mixed up. */
    private volatile long comm;

    /**
     * Collective.
     *
     * @param spare communicators of closed gathers; since all ranks open and close gathers in the
     *     same order, they have the same ones
     */
    MpiRowGather(Mpi mpi, long world, MpiProgress progress, MpiFabric fabric, Deque<Long> spare) {
        this.mpi = mpi;
        this.spare = spare;
        this.progress = progress;
        this.fabric = fabric;
        // This rank's own work counts, since each slice is some work. If nothing moves, the error
        // names the next rank.
        int next = (fabric.rank() + 1) % fabric.size();
        this.done = new Awaited("MPI_Allgatherv", fabric.rank(), next, -1);
        this.words =
                MemoryRegion.around(
                        fabric.size(), Arena.ofAuto().allocate(Long.BYTES, 64), () -> {});
        Long left = spare.pollLast();
        if (left == null) {
            run(() -> comm = mpi.duplicate(world));
        } else {
            comm = left;
        }
    }

    /** Runs a call on the progress thread and waits for it. */
    private void run(Runnable call) {
        int number = ++tasks;
        progress.submit(
                () -> {
                    call.run();
                    fabric.worked();
                    fabric.store(words, fabric.rank(), 0, number);
                });
        fabric.await(words, fabric.rank(), 0, number, done);
    }

    @Override
    public void close() {
        spare.addLast(comm);
    }

    @Override
    public void gather(Region region, long fromAt, long toAt, long rowBytes, long[] rows) {
        if (!UNDER_WAY.compareAndSet(false, true)) {
            throw new IllegalStateException(
                    "two gathers by MPI_Allgatherv at once: expected one sequential operator in"
                            + " use at a time");
        }
        try {
            long part = region.part(fabric.rank()).address();
            long most = Arrays.stream(rows).max().orElse(0);
            long step = Math.max(1, SLICE_BYTES / rows.length / rowBytes);
            for (long first = 0; first < most; first += step) {
                long from = first;
                run(() -> slice(part + fromAt, part + toAt, rowBytes, rows, from, step));
            }
        } finally {
            UNDER_WAY.set(false);
        }
    }

    /** Gathers rows {@code from} to {@code from + step} of every rank. */
    private void slice(long source, long target, long rowBytes, long[] rows, long from, long step) {
        long type = mpi.contiguousType(Math.toIntExact(rowBytes));
        int rank = fabric.rank();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment counts = arena.allocate(ValueLayout.JAVA_INT, rows.length);
            MemorySegment places = arena.allocate(ValueLayout.JAVA_INT, rows.length);
            long first = 0;
            for (int r = 0; r < rows.length; r++) {
                int place = Math.toIntExact(first + Math.min(from, rows[r]));
                counts.setAtIndex(
                        ValueLayout.JAVA_INT, r, (int) Math.clamp(rows[r] - from, 0, step));
                places.setAtIndex(ValueLayout.JAVA_INT, r, place);
                first += rows[r];
            }
            mpi.allgatherv(
                    source + Math.min(from, rows[rank]) * rowBytes,
                    counts.getAtIndex(ValueLayout.JAVA_INT, rank),
                    type,
                    target,
                    counts.address(),
                    places.address(),
                    type,
                    comm);
        } finally {
            mpi.freeType(type);
        }
    }
}
