// Your own reduce-scatter: recursive halving, or a pairwise exchange if the number of ranks is not
// a power of two. Run: see docs/algorithms.md

import dev.weft.plan.Chunk;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** In each of log2(ranks) rounds a rank sends half of its remaining sums, half as far as before. */
public final class RecursiveHalving implements ReductionWriter {

    @Override
    public String label() {
        return "recursive-halving";
    }

    @Override
    public List<StepPlan> plans(ReductionRequest request) {
        if (request.all()) {
            throw new IllegalArgumentException("an all-reduce: expected a reduce-scatter");
        }
        int ranks = request.ranks();
        StepPlanBuilder plan = new StepPlanBuilder(request.placement());
        List<Part> sums = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            Part own = buffer(plan, rank, "sums", request);
            sums.add(own);
            for (Chunk chunk : inOrderOfSending(rank, request)) {
                Part a = request.rows(plan.a(rank), chunk);
                plan.multiply(rank, 0, a, plan.b(rank), request.rows(own, chunk), false);
            }
        }
        for (int round : rounds(ranks)) {
            for (int rank = 0; rank < ranks; rank++) {
                boolean halves = isPowerOfTwo(ranks);
                int to = halves ? rank ^ round : (rank + round) % ranks;
                Part place = buffer(plan, to, "from " + rank, request);
                for (Chunk chunk : request.allChunks()) {
                    if (round(rank, chunk.source(), ranks) == round) {
                        Part arrived = request.rows(place, chunk);
                        Part own = request.rows(sums.get(to), chunk);
                        plan.copy(rank, 0, request.rows(sums.get(rank), chunk), arrived);
                        // In halving the lower rank's first: all rows are summed in the same order.
                        List<Part> addends =
                                halves && rank < to
                                        ? List.of(arrived, own)
                                        : List.of(own, arrived);
                        plan.add(to, 0, addends, own);
                    }
                }
            }
        }
        for (Chunk chunk : request.allChunks()) {
            int owner = chunk.source();
            Part c = request.rowsOfC(plan.c(owner), chunk);
            plan.add(owner, 0, List.of(request.rows(sums.get(owner), chunk)), c);
        }
        return plan.build();
    }

    private static boolean isPowerOfTwo(int ranks) {
        return Integer.bitCount(ranks) == 1;
    }

    /** Distances: halved from round to round, or one more each time. */
    private static List<Integer> rounds(int ranks) {
        return isPowerOfTwo(ranks)
                ? IntStream.iterate(ranks / 2, d -> d > 0, d -> d / 2).boxed().toList()
                : IntStream.range(1, ranks).boxed().toList();
    }

    /** The round in which a rank sends its sums of an owner's rows; 0 for its own. */
    private static int round(int rank, int owner, int ranks) {
        return isPowerOfTwo(ranks)
                ? Integer.highestOneBit(rank ^ owner)
                : Math.floorMod(owner - rank, ranks);
    }

    private static List<Chunk> inOrderOfSending(int rank, ReductionRequest request) {
        int ranks = request.ranks();
        List<Integer> rounds = new ArrayList<>(rounds(ranks));
        rounds.add(0);
        return request.allChunks().stream()
                .sorted(Comparator.comparing(c -> rounds.indexOf(round(rank, c.source(), ranks))))
                .toList();
    }

    private static Part buffer(StepPlanBuilder plan, int rank, String name, ReductionRequest of) {
        return plan.buffer(rank, name, Buffer.Kind.SUMS, of.rows().totalRows(), of.cols());
    }
}
