package dev.weft.compat.command;

import dev.weft.cli.console.Progress;
import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.RoundTimes;
import dev.weft.compat.Sb2sb;
import dev.weft.compat.Sb2sbConfig;
import dev.weft.compat.Sb2sbLayout;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Plan;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One rank's part of {@code weft gather}: the gather and, alternating with it, a plain copy of the
 * same number of bytes, by all ranks at once. Its times are those of all ranks together.
 *
 * @param lnc programs per rank, for the tiled gather
 */
record GatherRun(
        GatherCommand command,
        Sb2sbLayout layout,
        long m,
        long k,
        DType type,
        ReplicaGroups groups,
        int lnc,
        Sb2sbConfig config,
        Arena arena)
        implements SourceRun {

    private static final int FIRST_CALLS = 2;

    @Override
    public SourceReport run(Fabric world, Progress progress) {
        try (SourceSite<?> site = SourceSite.of(Transport.of(world), command.mode.cuda())) {
            return run(world, site, progress);
        }
    }

    private <M> SourceReport run(Fabric world, SourceSite<M> site, Progress progress) {
        int tp = groups.with(world.rank()).size();
        try (Sb2sb<M> gather =
                Sb2sb.prepare(site.place(), layout, world, m, k, type, groups, tp, lnc, config)) {
            return run(world, tp, site, gather, progress);
        }
    }

    private <M> SourceReport run(
            Fabric world, int tp, SourceSite<M> site, Sb2sb<M> gather, Progress progress) {
        long seed = command.seed;
        int warmup = command.rounds.warmup();
        int iterations = command.rounds.iterations();
        progress.begin("gathering", (long) FIRST_CALLS + warmup + iterations);
        boolean exact = true;
        // Other data first, twice, since operators have two sets of buffers: so a measured call
        // that fails to move something is noticed.
        for (int call = 0; call < FIRST_CALLS; call++) {
            M other = site.put(input(world, seed + 1));
            world.barrier();
            M out = gather.call(other);
            world.barrier();
            exact &= isExact(site, out, world, seed + 1);
            progress.advance(call + 1);
        }
        M inp = site.put(input(world, seed));
        Runnable copy = site.plainCopy(receivedBytes(tp), arena);
        List<RoundTimes> times = new ArrayList<>();
        M out = null;
        for (int round = -warmup; round < iterations; round++) {
            world.barrier();
            long start = System.nanoTime();
            out = gather.call(inp);
            long gathered = wall(world, start, System.nanoTime());
            world.barrier();
            start = System.nanoTime();
            copy.run();
            long copied = wall(world, start, System.nanoTime());
            if (round >= 0) {
                times.add(new RoundTimes(0, gathered, copied, 0, gathered, -1, 0));
            }
            progress.advance(FIRST_CALLS + warmup + round + 1);
        }
        exact &= isExact(site, out, world, seed);
        Plan plan = gather.plan();
        // A gather is comm-only; the plain copy takes the place of the unfused call.
        RankReport report =
                new RankReport(
                        plan.name(),
                        site.device(),
                        "copy",
                        0,
                        plan.steps().get(gather.rank()).movers(),
                        plan.chunks().chunkRows(gather.rank()),
                        times,
                        exact,
                        true,
                        true,
                        List.of(),
                        List.of(),
                        gather.timeline());
        return new SourceReport(
                world.rank(),
                new long[] {gather.outRows(), gather.outCols()},
                "",
                gather.programs(),
                0,
                new Verification(Promise.BITWISE, exact, true, true, null, 0, 0, m, m, false, 0),
                report);
    }

    /** The bytes that a rank gets from its peers in a call, in a group of {@code tp}. */
    long receivedBytes(int tp) {
        return (tp - 1) * m * k * type.bytes();
    }

    /**
     * From the first rank's start to the last one's end if they share a clock, as on one host;
     * otherwise the time of the slowest.
     */
    private static long wall(Fabric world, long startNs, long endNs) {
        if (world.hosts().count() > 1) {
            return Arrays.stream(world.exchange(endNs - startNs)).max().orElse(0);
        }
        long first = Arrays.stream(world.exchange(startNs)).min().orElse(startNs);
        long last = Arrays.stream(world.exchange(endNs)).max().orElse(endNs);
        return last - first;
    }

    private Matrix input(Fabric world, long ofSeed) {
        Matrix input = Matrix.allocate(arena, type, m, k);
        new NormalData(ofSeed, world.rank()).fill(input);
        return input;
    }

    private <M> boolean isExact(SourceSite<M> site, M out, Fabric world, long ofSeed) {
        List<Integer> members = groups.with(world.rank());
        Matrix whole =
                command.wholes.computeIfAbsent(
                        members.getFirst() + " " + ofSeed, key -> whole(members, ofSeed));
        try (Arena own = Arena.ofConfined()) {
            return site.get(out, own).bitwiseEquals(whole);
        }
    }

    /** Made from the same data as the inputs, without any gather. */
    private Matrix whole(List<Integer> members, long ofSeed) {
        int tp = members.size();
        boolean below = layout == Sb2sbLayout.ROWS;
        Matrix whole = Matrix.allocate(arena, type, below ? m * tp : m, below ? k : k * tp);
        for (int r = 0; r < tp; r++) {
            Matrix part = below ? whole.rows(r * m, m) : whole.block(0, m, r * k, k);
            new NormalData(ofSeed, members.get(r)).fill(part);
        }
        return whole;
    }
}
