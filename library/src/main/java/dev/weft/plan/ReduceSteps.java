package dev.weft.plan;

import dev.weft.plan.step.Buffer.Kind;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** Writes reductions as steps. Ranks without a part of K multiply nothing. */
final class ReduceSteps {

    /** The buffer of sums that a rank multiplies, and the one of whole sums that come to it. */
    static final int SUMS = StepPlan.C + 1;

    static final int WHOLE = StepPlan.C + 2;

    private final Reduction reduction;
    private final ReductionRequest request;
    private final Reduction.Order order;
    private final Chunks chunks;
    private final Shards rows;
    private final boolean all;
    private final Hosts hosts;
    private final int ranks;
    private final long cols;
    private final List<Integer> multiplying;
    private final StepPlanBuilder builder;

    /** By rank: sums of all rows, as far as the rank multiplies or adds them. */
    private final List<Part> sums = new ArrayList<>();

    /** By rank: whole sums that other ranks have sent. */
    private final List<Part> whole = new ArrayList<>();

    /** By rank: sums of the ranks before it, which it adds its own to. */
    private final List<Part> passed = new ArrayList<>();

    /** Rows of C that are finished once all products are queued: others wait for those. */
    private final List<Runnable> finishing = new ArrayList<>();

    ReduceSteps(Reduction reduction, ReductionRequest request) {
        if (!reduction.gives(request.order())) {
            throw new IllegalArgumentException(
                    "%s does not sum %s".formatted(reduction.label(), request.order().label()));
        }
        this.reduction = reduction;
        this.request = request;
        this.order = request.order();
        this.chunks = request.chunks();
        this.rows = request.rows();
        this.all = request.all();
        this.hosts = request.hosts();
        this.ranks = request.ranks();
        this.cols = request.cols();
        this.multiplying = Reduction.parts(request.kParts());
        this.builder = new StepPlanBuilder(request.placement());
        Kind kind = order == Reduction.Order.BY_RANK_BF16 ? Kind.ROUNDED_SUMS : Kind.SUMS;
        for (int rank = 0; rank < ranks; rank++) {
            sums.add(builder.buffer(rank, "sums so far", kind, rows.totalRows(), cols));
            whole.add(builder.buffer(rank, "whole sums", Kind.SUMS, rows.totalRows(), cols));
            passed.add(builder.buffer(rank, "own sums", Kind.SUMS, rows.totalRows(), cols));
        }
    }

    /** The plans of all ranks. */
    List<StepPlan> plans() {
        switch (reduction) {
            case DIRECT -> direct();
            case CHAIN, RING -> chain(Hosts.apart(ranks));
            case HIERARCHICAL -> chain(hosts);
            case MESH_PUSH, SEQUENTIAL -> mesh();
            case AUTO -> throw new IllegalArgumentException("auto has no plans of its own");
        }
        finishing.forEach(Runnable::run);
        return builder.build();
    }

    private void direct() {
        for (Chunk chunk : inTurn()) {
            int owner = chunk.source();
            if (ranks == 1) {
                // Nothing is added: rows are finished while their sums are in a near cache.
                Part c = request.rowsOfC(builder.c(0), chunk);
                builder.multiply(0, 0, request.rows(builder.a(0), chunk), builder.b(0), c, false);
                continue;
            }
            multiply(owner, chunk, multiplying, false);
            finish(owner, of(sums, owner, chunk), chunk);
            if (all) {
                toEverybody(owner, of(sums, owner, chunk), chunk, 0);
            }
        }
    }

    /** Sums a chunk at {@code rank} over the parts of K of {@code parts}, in their order. */
    private void multiply(int rank, Chunk chunk, List<Integer> parts, boolean resume) {
        boolean goesOn = resume;
        for (int part : parts) {
            Part a = request.rows(builder.a(part), chunk);
            builder.multiply(rank, 0, a, builder.b(part), of(sums, rank, chunk), goesOn);
            goesOn = true;
        }
    }

    /**
     * Passes chunks from group to group; a group is ranks that share memory, or a single rank. The
     * rows of the last group come last: they need not travel after that.
     */
    private void chain(Hosts groups) {
        List<Integer> having = multiplying.stream().map(groups::hostOf).distinct().toList();
        List<Chunk> order = inTurn();
        if (!all) {
            int last = having.getLast();
            order.sort(Comparator.comparing(chunk -> groups.hostOf(chunk.source()) == last));
        }
        for (int turn = 0; turn < order.size(); turn++) {
            pass(groups, having, order.get(turn), turn);
        }
    }

    private void pass(Hosts groups, List<Integer> having, Chunk chunk, int turn) {
        int before = -1;
        for (int group : having) {
            int rank = taker(groups, group, turn);
            List<Integer> parts =
                    multiplying.stream().filter(part -> groups.hostOf(part) == group).toList();
            if (before < 0) {
                multiply(rank, chunk, parts, false);
            } else if (reduction == Reduction.RING) {
                multiply(rank, chunk, parts, false);
                Part arrived = of(passed, rank, chunk);
                builder.copy(before, 0, of(sums, before, chunk), arrived);
                Part own = of(sums, rank, chunk);
                builder.add(rank, 0, List.of(arrived, own), own);
            } else {
                builder.copy(before, 0, of(sums, before, chunk), of(sums, rank, chunk));
                multiply(rank, chunk, parts, true);
            }
            before = rank;
        }
        if (all) {
            around(groups, before, turn, chunk);
        } else if (chunk.source() == before) {
            finish(before, of(sums, before, chunk), chunk);
        } else {
            int lane = groups.shareMemory(before, chunk.source()) ? 2 : 1;
            sendWhole(before, lane, chunk.source(), of(sums, before, chunk), chunk);
        }
    }

    private static int taker(Hosts groups, int group, int turn) {
        return groups.first(group) + turn % groups.size(group);
    }

    /** Sends whole sums to one rank of each group in turn, which distributes them there. */
    private void around(Hosts groups, int last, int turn, Chunk chunk) {
        int from = last;
        Part held = of(sums, last, chunk);
        finish(last, held, chunk);
        for (int hop = 0; hop < groups.count(); hop++) {
            int group = (groups.hostOf(last) + hop) % groups.count();
            int rank = taker(groups, group, turn);
            if (hop > 0) {
                held = sendWhole(from, 1, rank, held, chunk);
            }
            for (int mate = 1; mate < groups.size(group); mate++) {
                sendWhole(rank, 2, taker(groups, group, turn + mate), held, chunk);
            }
            from = rank;
        }
    }

    private void mesh() {
        List<List<Part>> addends = new ArrayList<>();
        for (int owner = 0; owner < ranks; owner++) {
            addends.add(new ArrayList<>());
        }
        for (int rank : multiplying) {
            List<Chunk> order = othersFirst(rank);
            order.forEach(chunk -> multiply(rank, chunk, List.of(rank), false));
            if (reduction == Reduction.SEQUENTIAL) {
                builder.join(rank);
            }
            for (int owner = 0; owner < ranks; owner++) {
                addends.get(owner).add(atOwner(rank, owner));
            }
            for (Chunk chunk : order) {
                Part arrived = addends.get(chunk.source()).getLast();
                if (chunk.source() != rank) {
                    Part to = arrived.rows(chunk.firstRow(), chunk.rows());
                    builder.copy(rank, 0, of(sums, rank, chunk), to);
                }
            }
        }
        for (int owner = 0; owner < ranks; owner++) {
            for (Chunk chunk : chunksOf(owner)) {
                addAll(addends.get(owner), chunk);
            }
        }
    }

    /**
     * Others' rows first, from the next rank's on: they still have to travel. Owners take turns, so
     * that all links are busy.
     */
    private List<Chunk> othersFirst(int rank) {
        List<Chunk> order = inTurn();
        order.sort(
                Comparator.comparing((Chunk chunk) -> chunk.source() == rank)
                        .thenComparingInt(Chunk::index)
                        .thenComparingInt(chunk -> Math.floorMod(chunk.source() - rank, ranks)));
        return order;
    }

    /** Where the owner has the sums of {@code rank} for its rows. */
    private Part atOwner(int rank, int owner) {
        return rank == owner
                ? sums.get(rank).rows(rows.firstRow(owner), rows.rows(owner))
                : builder.buffer(
                        owner,
                        "own sums",
                        order == Reduction.Order.BY_RANK_BF16 ? Kind.ROUNDED_SUMS : Kind.SUMS,
                        rows.rows(owner),
                        cols);
    }

    private List<Chunk> chunksOf(int owner) {
        return IntStream.range(0, chunks.count(owner))
                .mapToObj(c -> chunks.chunk(owner, c))
                .toList();
    }

    private void addAll(List<Part> addends, Chunk chunk) {
        int owner = chunk.source();
        List<Part> ofChunk =
                addends.stream().map(part -> part.rows(chunk.firstRow(), chunk.rows())).toList();
        if (!all) {
            builder.add(owner, 0, ofChunk, request.rowsOfC(builder.c(owner), chunk));
            return;
        }
        Part held = of(whole, owner, chunk);
        builder.add(owner, 0, ofChunk, held);
        finish(owner, held, chunk);
        toEverybody(owner, held, chunk, 1);
    }

    private void toEverybody(int rank, Part held, Chunk chunk, int lane) {
        for (int distance = 1; distance < ranks; distance++) {
            sendWhole(rank, lane, (rank + distance) % ranks, held, chunk);
        }
    }

    private Part sendWhole(int from, int lane, int to, Part held, Chunk chunk) {
        Part place = of(whole, to, chunk);
        builder.copy(from, lane, held, place);
        finish(to, place, chunk);
        return place;
    }

    private void finish(int rank, Part held, Chunk chunk) {
        finishing.add(
                () -> builder.add(rank, 0, List.of(held), request.rowsOfC(builder.c(rank), chunk)));
    }

    /** Chunks of all owners in turn, so that all of them get whole rows early. */
    private List<Chunk> inTurn() {
        int most = IntStream.range(0, ranks).map(chunks::count).max().orElseThrow();
        List<Chunk> order = new ArrayList<>();
        for (int c = 0; c < most; c++) {
            for (int owner = 0; owner < ranks; owner++) {
                if (c < chunks.count(owner)) {
                    order.add(chunks.chunk(owner, c));
                }
            }
        }
        return order;
    }

    private Part of(List<Part> buffers, int rank, Chunk chunk) {
        return request.rows(buffers.get(rank), chunk);
    }
}
