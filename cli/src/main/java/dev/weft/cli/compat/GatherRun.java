package dev.weft.cli.compat;

import dev.weft.cli.console.Progress;
import dev.weft.compat.Sb2sb;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.Timeline;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Map;

/**
 * One rank's part of {@code weft gather}: the gather and, in turns with it, a plain copy of as many
 * bytes, by all ranks at once. What a rank reports is of all ranks together. Any rank's thread may
 * run it.
 *
 * @param rows of the input of each rank
 * @param lnc programs per rank, for the tiled gather
 * @param wholes what groups must end with, by first rank and seed; filled as needed
 */
record GatherRun(
        Kind kind,
        long rows,
        long cols,
        DType dtype,
        int groups,
        int lnc,
        Sb2sbConfig config,
        int warmup,
        int iterations,
        long seed,
        Map<String, Matrix> wholes,
        Arena arena) {

    private static final int FIRST_CALLS = 2;

    /** Which of the gathers. */
    public enum Kind {
        UNTILED,
        TILED,
        ROWS
    }

    /**
     * @param gather round by round, from the first rank's start to the last one's end
     * @param copy likewise, of the plain copy
     * @param algorithm what ran
     * @param timeline of this rank in the last round
     */
    record Report(
            int rank,
            int ranks,
            boolean exact,
            long receivedBytes,
            Samples gather,
            Samples copy,
            String algorithm,
            int programs,
            Timeline timeline) {

        double gatherGbPerSecond() {
            return gbPerSecond(gather);
        }

        double copyGbPerSecond() {
            return gbPerSecond(copy);
        }

        /** The gather's rate as a part of the copy's; 0 where nothing is copied. */
        double ofTheCopy() {
            return copyGbPerSecond() == 0 ? 0 : gatherGbPerSecond() / copyGbPerSecond();
        }

        private double gbPerSecond(Samples samples) {
            return samples.median() == 0 ? 0 : receivedBytes / samples.median() / 1e3;
        }
    }

    /**
     * @param progress told of all that is gathered, measured or to be verified
     */
    Report run(Fabric world, Progress progress) {
        int tp = world.size() / groups;
        progress.begin("gathering", (long) FIRST_CALLS + warmup + iterations);
        try (Sb2sb<Matrix> gather = prepare(world, tp)) {
            boolean exact = true;
            // Other data first, twice, since operators have two sets of buffers: what a measured
            // call failed to move would be seen.
            for (int call = 0; call < FIRST_CALLS; call++) {
                exact &= isExact(gather.call(input(world, seed + 1)), world, tp, seed + 1);
                progress.advance(call + 1);
            }
            Matrix inp = input(world, seed);
            long received = (tp - 1) * inp.elementBytes();
            MemorySegment source = arena.allocate(received).fill((byte) 1);
            MemorySegment target = arena.allocate(received);
            long[] gatherNs = new long[iterations];
            long[] copyNs = new long[iterations];
            Matrix out = inp;
            for (int round = -warmup; round < iterations; round++) {
                world.barrier();
                long start = System.nanoTime();
                out = gather.call(inp);
                long gathered = wall(world, start, System.nanoTime());
                world.barrier();
                start = System.nanoTime();
                MemorySegment.copy(source, 0, target, 0, received);
                long copied = wall(world, start, System.nanoTime());
                if (round >= 0) {
                    gatherNs[round] = gathered;
                    copyNs[round] = copied;
                }
                progress.advance(FIRST_CALLS + warmup + round + 1);
            }
            exact &= isExact(out, world, tp, seed);
            return new Report(
                    world.rank(),
                    world.size(),
                    Arrays.stream(world.exchange(exact ? 1 : 0)).allMatch(each -> each == 1),
                    received,
                    Samples.ofNs(gatherNs),
                    Samples.ofNs(copyNs),
                    gather.plan().name(),
                    gather.programs(),
                    gather.timeline());
        }
    }

    private Sb2sb<Matrix> prepare(Fabric world, int tp) {
        ReplicaGroups lists = ReplicaGroups.consecutive(groups, tp);
        return switch (kind) {
            case UNTILED -> Sb2sb.untiled(world, rows, cols, dtype, lists, tp, config);
            case TILED -> Sb2sb.tiled(world, rows, cols, dtype, lists, tp, lnc, config);
            case ROWS -> Sb2sb.rows(world, rows, cols, dtype, lists, tp, config);
        };
    }

    /** From the first rank's start to the last one's end: ranks of one host share the clock. */
    private static long wall(Fabric world, long startNs, long endNs) {
        long first = Arrays.stream(world.exchange(startNs)).min().orElse(startNs);
        long last = Arrays.stream(world.exchange(endNs)).max().orElse(endNs);
        return last - first;
    }

    private Matrix input(Fabric world, long ofSeed) {
        Matrix input = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(ofSeed, world.rank()).fill(input);
        return input;
    }

    private boolean isExact(Matrix out, Fabric world, int tp, long ofSeed) {
        int first = world.rank() / tp * tp;
        Matrix whole =
                wholes.computeIfAbsent(first + " " + ofSeed, key -> whole(first, tp, ofSeed));
        return out.bitwiseEquals(whole);
    }

    /** Made from the same data as the inputs, without any gather. */
    private Matrix whole(int firstRank, int tp, long ofSeed) {
        boolean below = kind == Kind.ROWS;
        Matrix whole =
                Matrix.allocate(arena, dtype, below ? rows * tp : rows, below ? cols : cols * tp);
        for (int r = 0; r < tp; r++) {
            Matrix part = below ? whole.rows(r * rows, rows) : whole.block(0, rows, r * cols, cols);
            new NormalData(ofSeed, firstRank + r).fill(part);
        }
        return whole;
    }
}
