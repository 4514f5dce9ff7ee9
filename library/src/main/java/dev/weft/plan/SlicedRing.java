package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Writes the plans of {@link Algorithm#slicedRing}. */
record SlicedRing(int programs, int lanes, boolean byLane) implements GatherWriter {

    SlicedRing {
        if (programs < 1 || lanes < 1) {
            throw new IllegalArgumentException(
                    "%s programs and %s lanes: expected at least one of each"
                            .formatted(programs, lanes));
        }
    }

    @Override
    public String label() {
        return Algorithm.RING.label();
    }

    @Override
    public boolean isSymmetric() {
        return true;
    }

    /** Ignores the lanes that are requested: the slices give their number. */
    @Override
    public List<StepPlan> plans(GatherRequest request) {
        Chunks chunks = cut(request.chunks());
        int laneCount = request.ranks() == 1 ? 0 : lanes;
        GatherSteps.Form form =
                new GatherSteps.Form(
                        GatherSteps.Storage.PING_PONG,
                        request.wants(GatherRequest.Option.GATHER_FIRST),
                        laneCount,
                        Planner.leastRows(request.hosts()),
                        programs,
                        block -> program(chunks, block));
        return GatherSteps.write(
                request.with(chunks, 1),
                form,
                rank -> GatherDraft.of(chunks, new Ring(chunks), rank, laneCount));
    }

    private int program(Chunks chunks, RowBlock block) {
        int slice = slice(chunks, block.source(), block.firstRow());
        return byLane ? slice % programs : slice / lanes;
    }

    private int lane(Chunks chunks, int source, int segment) {
        int slice = slice(chunks, source, segment * chunks.segmentRows(source));
        return byLane ? slice / programs : slice % lanes;
    }

    private int slice(Chunks chunks, int source, long row) {
        return Math.toIntExact(row / sliceRows(chunks, source));
    }

    private long sliceRows(Chunks chunks, int source) {
        return Math.max(1, Math.ceilDiv(chunks.shards().rows(source), programs * lanes));
    }

    /** Chunks with about the rows of the given ones, and blocks, that end where slices do. */
    @Override
    public Chunks cut(Chunks given) {
        Shards shards = given.shards();
        long blockRows = given.mostBlockRows();
        boolean even = true;
        long[] chunkRows = new long[shards.ranks()];
        for (int source = 0; source < chunkRows.length; source++) {
            long slice = sliceRows(given, source);
            chunkRows[source] = divisor(slice, given.chunkRows(source));
            even &= shards.rows(source) == slice * programs * lanes && slice == sliceRows(given, 0);
        }
        long chunk =
                IntStream.range(0, chunkRows.length).mapToLong(i -> chunkRows[i]).min().orElse(1);
        long perChunk = even ? divisor(sliceRows(given, 0) / chunk, blockRows / chunk) : 1;
        long block = blockRows < chunk ? blockRows : chunk * perChunk;
        Chunks cut = Chunks.ofFullRows(shards, given.cols(), block, source -> chunkRows[source]);
        return given.chunkCols() < given.cols() ? cut.withChunkCols(given.chunkCols()) : cut;
    }

    /** The largest divisor up to {@code most}, or all if that would be tiny. */
    private static long divisor(long whole, long most) {
        long best = 1;
        for (long parts = 1; parts <= whole; parts++) {
            if (whole % parts == 0 && whole / parts <= Math.max(1, most)) {
                best = whole / parts;
                break;
            }
        }
        return 2 * best >= Math.min(whole, most) ? best : whole;
    }

    /** Every rank puts its own segments to its successor, then what it receives, step by step. */
    private final class Ring implements Routing {

        private final Chunks chunks;

        Ring(Chunks chunks) {
            this.chunks = chunks;
        }

        private int ranks() {
            return chunks.shards().ranks();
        }

        @Override
        public boolean pulls() {
            return false;
        }

        @Override
        public List<Hop> lane(int rank, int lane) {
            List<Hop> hops = new ArrayList<>();
            for (int step = 0; step < ranks() - 1; step++) {
                int source = Math.floorMod(rank - step, ranks());
                for (int segment = 0; segment < chunks.segments(source); segment++) {
                    if (SlicedRing.this.lane(chunks, source, segment) == lane) {
                        int next = (rank + 1) % ranks();
                        hops.add(Hop.ofSegment(rank, next, source, segment, false));
                    }
                }
            }
            return hops;
        }

        @Override
        public List<Delivery> deliveries(int rank) {
            List<Delivery> deliveries = new ArrayList<>();
            for (int lane = 0; lane < lanes; lane++) {
                List<Hop> hops = lane(Math.floorMod(rank - 1, ranks()), lane);
                if (!hops.isEmpty()) {
                    deliveries.add(new Delivery(lane, 0, hops));
                }
            }
            return deliveries;
        }
    }
}
