package dev.weft.compat.command;

import dev.weft.cli.console.Progress;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.run.ViewRounds;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.cli.verify.ProductJudge.Judgement;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Gemms;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;

/**
 * One rank's part of a command that multiplies what it gathers: generates the inputs from the seed,
 * alternately measures the source's call and the unfused one, and checks the product of one more
 * call.
 *
 * <p>A rank in no group does the same alone, without rows.
 */
record ProductRun(
        ProductCommand source,
        ReplicaGroups groups,
        long m,
        long k,
        long n,
        boolean ownB,
        DType type,
        Arena arena)
        implements SourceRun {

    /**
     * A rank with its operands.
     *
     * @param group the rank's group, one of those in {@code world}
     * @param b the rank's own B
     * @param shard the rank's rows of A
     */
    record At<M>(
            ProductRun run, Fabric world, Fabric group, SourceSite<M> site, M b, Matrix shard) {

        /** The call of a prepared operator, with the shard in place. */
        SourceCall<M> call(Operator<M> operator, long[] shape, String path, Runnable release) {
            return new SourceCall.OfOperator<>(world, site, operator, shape, path, release);
        }

        /**
         * Puts the shard into both halves of the operator's memory, by a call for each that only
         * gathers.
         */
        void place(Operator<M> operator) {
            for (int half = 0; half < 2; half++) {
                world.barrier();
                site.copy(shard, operator.nextShard());
                world.barrier();
                operator.callInPlace(View.COMM_ONLY);
            }
            // Reserving memory may wait for what runs on a GPU: no rank does so before all are
            // done.
            world.barrier();
        }
    }

    private int member(int worldRank) {
        return groups.with(worldRank).indexOf(worldRank);
    }

    /** One if the rank sits out, since a GPU needs a B with columns. */
    @Override
    public long cols(int worldRank) {
        if (sitsOut(worldRank)) {
            return 1;
        }
        return ownB ? n : colsOfGroup(worldRank).rows(member(worldRank));
    }

    /** How B's columns are spread over a rank's group. */
    private Shards colsOfGroup(int worldRank) {
        return Shards.even(n, groups.with(worldRank).size());
    }

    /** The shards of one group's A. */
    private Shards shards(Matrix a) {
        return Shards.even(a.rows(), Math.max(1, Math.toIntExact(a.rows() / m)));
    }

    @Override
    public SourceReport run(Fabric fabric, Progress progress) throws IOException {
        Transport world = Transport.of(fabric);
        Fabric group = groups.isAll(world.size()) ? world : world.split(groups);
        int member = member(world.rank());
        try (Arena own = Arena.ofShared()) {
            Matrix a = source.inputs.computeIfAbsent(groups.groupOf(world.rank()), this::a);
            Matrix b = b(world.rank(), own);
            Matrix shard = sitsOut(world.rank()) ? a : a.rows(member * m, m);
            try (SourceSite<?> site = SourceSite.of(world, source.mode.cuda())) {
                return run(at(world, group, site, b, shard), a, b, progress);
            }
        } finally {
            if (group != world) {
                group.close();
            }
        }
    }

    private <M> At<M> at(Fabric world, Fabric group, SourceSite<M> site, Matrix b, Matrix shard) {
        return new At<>(this, world, group, site, site.put(b), shard);
    }

    private <M> SourceReport run(At<M> at, Matrix a, Matrix b, Progress progress)
            throws IOException {
        Transport world = Transport.of(at.world());
        SourceSite<M> site = at.site();
        try (Arena own = Arena.ofShared();
                SourceCall<M> call = source.prepare(at)) {
            ViewRounds.Measured measured;
            Matrix ofOperator;
            try (Operator<M> unfused = prepare(at, a, Algorithm.SEQUENTIAL)) {
                int warmup = source.rounds.warmup();
                int iterations = source.rounds.iterations();
                measured =
                        new ViewRounds(world, warmup, iterations, progress)
                                .measure(call, unfused, null);
                ofOperator = site.get(unfused.lastResult().product(), own);
                world.barrier();
            }
            M made = call.product();
            world.barrier();
            Matrix product = site.get(made, own);
            Matrix aOut = call.gathered().map(rows -> site.get(rows, own)).orElse(null);
            Matrix fused = ownB ? fused(at, a, own) : null;
            // Peers that are done wait meanwhile.
            Verification judged =
                    Heartbeat.during(
                            world,
                            () -> {
                                Boolean exact = aOut == null ? null : aOut.bitwiseEquals(a);
                                Matrix unfused = reference(a, b, ofOperator, own);
                                return judge(a, b, product, unfused, fused, exact);
                            });
            world.barrier();
            return new SourceReport(
                    world.rank(),
                    call.shape(),
                    call.path(),
                    1,
                    call.reachableBytes(),
                    judged,
                    call.report(
                            site.device(),
                            measured,
                            !Boolean.FALSE.equals(judged.gatheredExact()),
                            judged.bitwiseEqualToUnfused()));
        }
    }

    /** An operator with the shard in place. Collective. */
    private <M> Operator<M> prepare(At<M> at, Matrix a, Algorithm algorithm) {
        Operator<M> operator =
                at.site()
                        .operators(at.group())
                        .a(shards(a), type)
                        .b(at.b(), ownB)
                        .output(type)
                        .algorithm(algorithm)
                        .prepare();
        at.place(operator);
        return operator;
    }

    /** The fused operator's product of the same operands. Collective. */
    private <M> Matrix fused(At<M> at, Matrix a, Arena own) {
        try (Operator<M> operator = prepare(at, a, Algorithm.MESH_PULL)) {
            M product = operator.callInPlace(View.PIPELINED).product();
            at.world().barrier();
            Matrix fused = at.site().get(product, own);
            at.world().barrier();
            return fused;
        }
    }

    /**
     * One product of all rows by one thread; the operator's on a GPU and for Helion's large ones.
     */
    private Matrix reference(Matrix a, Matrix b, Matrix ofOperator, Arena own) {
        return source.mode.cuda() || ownB
                ? ofOperator
                : judge(a).unfused(Gemms.auto(a.dtype(), b.dtype()), a, b, ofOperator.dtype(), own);
    }

    private ProductJudge judge(Matrix a) {
        return new ProductJudge(shards(a), ownB, source.seed);
    }

    /**
     * @param fused the fused operator's product; null if the source does not compare with it
     * @param exact whether gathered A is exact; null if none is kept
     */
    Verification judge(
            Matrix a, Matrix b, Matrix product, Matrix unfused, Matrix fused, Boolean exact) {
        Judgement judged =
                source.looksAtEveryRow()
                        ? new Judgement(
                                new Float64Oracle(a, b, ownB).check(product), product.rows(), true)
                        : judge(a).judge(a, b, product);
        Deviation deviation = judged.deviation();
        boolean sampled = judged.checkedRows() < product.rows();
        return new Verification(
                Promise.BITWISE,
                exact,
                product.equalsUpToNaN(unfused) && (fused == null || product.equalsUpToNaN(fused)),
                deviation.withinBound(),
                source.isRight(deviation, product, fused),
                deviation.maxAbsErr(),
                deviation.relErr(),
                judged.checkedRows(),
                product.rows(),
                sampled && judged.freivalds(),
                deviation.notFinite());
    }

    /**
     * All of one group's A, without rows if there is no group; if each rank has its own B, it has
     * its own seed too.
     */
    private Matrix a(int group) {
        if (group < 0) {
            return Matrix.allocate(arena, type, 0, k);
        }
        int ranks = groups.groups().get(group).size();
        Matrix a = Matrix.allocate(arena, type, m * ranks, k);
        long seed = source.seed;
        if (!ownB) {
            new NormalData(seed, 2L * group).fill(a);
            return a;
        }
        for (int member = 0; member < ranks; member++) {
            new NormalData(seed + (long) group * ranks + member, 0).fill(a.rows(member * m, m));
        }
        return a;
    }

    private Matrix b(int worldRank, Arena own) {
        long seed = source.seed;
        if (ownB) {
            Matrix b = Matrix.allocate(own, type, n, k);
            new NormalData(seed + worldRank, 1).fill(b);
            return b;
        }
        if (sitsOut(worldRank)) {
            return Matrix.allocate(own, type, k, 1);
        }
        Shards cols = colsOfGroup(worldRank);
        int member = member(worldRank);
        Matrix b = Matrix.allocate(own, type, k, cols.rows(member));
        new NormalData(seed, 2L * groups.groupOf(worldRank) + 1)
                .fill(b, 0, cols.firstRow(member), n);
        return b;
    }
}
