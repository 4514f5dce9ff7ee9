package dev.weft.cli.options;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.plan.cut.Cut;
import dev.weft.search.Problem;
import dev.weft.search.Sums;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * What a run is asked for: a problem, and how it is run. Checked and complete, and the same on all
 * ranks. Who runs, prices or records it need not know whether rows are gathered or products summed.
 */
public record RunRequest(ProblemSpec problem, ExecutionSpec execution) {

    /** How the shards of a rank's group are cut, by the Ascend example's rule if it is wanted. */
    public Cut cut(int worldRank) {
        ExecutionSpec.AscendTiles tiles = execution.ascendTiles();
        if (tiles == null) {
            return execution.cut();
        }
        long rows = problem.shards(worldRank).maxRows();
        AscendChunkRule rule = AscendChunkRule.of(rows, problem.k(), tiles.baseM(), tiles.baseN());
        return new Cut(rule.rows(), 0, rule.cols() < problem.k() ? rule.cols() : 0);
    }

    /** The order of sums over ranks, in the words of records; null if there are none. */
    public String order() {
        return problem.gathers() ? null : execution.order().label();
    }

    /** The ranks whose outputs are written. */
    public List<Integer> writers() {
        int ranks = execution.place().hostPeers() ? 1 : problem.ranks();
        return IntStream.range(0, ranks).filter(rank -> !problem.sitsOut(rank)).boxed().toList();
    }

    /** Whether the user has added the algorithm. */
    public boolean hasOwnAlgorithm() {
        PlanWriter asked = OptionValues.writer(problem.op(), execution.algorithm());
        return !(asked instanceof Algorithm || asked instanceof Reduction);
    }

    /** The requested way to sum. */
    public ReductionWriter reduction() {
        return OptionValues.reduction(problem.op(), execution.algorithm());
    }

    /** Whether the algorithm is chosen by the model of this CPU. */
    public boolean choosesByModel() {
        return problem.gathers()
                && execution.algorithm().equals(Algorithm.AUTO.label())
                && !execution.place().cuda()
                && problem.largestGroup() > 1
                && problem.m() > 0;
    }

    /** Whether sums travel through host memory although the peers are GPUs. */
    public boolean isStaged() {
        List<String> staged = List.of(Reduction.CHAIN.label(), Reduction.MESH_PUSH.label());
        return !problem.gathers()
                && execution.place().cuda()
                && !execution.place().hostPeers()
                && staged.contains(execution.algorithm());
    }

    /** Where the peers' memory is, in the words of records; null on the CPU. */
    public String peers(Hosts hosts) {
        ExecutionSpec.Place place = execution.place();
        boolean staged = place.cuda() && !place.hostPeers() && hosts.count() > 1 || isStaged();
        return staged ? "staged" : place.peers();
    }

    /**
     * A group's part of the problem, to be priced.
     *
     * @param slow factors by which ranks of the world are slower
     */
    public Problem priced(List<Integer> group, Map<Integer, Double> slow) {
        int first = group.getFirst();
        Map<Integer, Double> slowMembers = new HashMap<>();
        slow.forEach(
                (rank, factor) -> {
                    if (group.contains(rank)) {
                        slowMembers.put(group.indexOf(rank), factor);
                    }
                });
        return new Problem(
                problem.shards(first),
                problem.k(),
                List.of(problem.cols(first)),
                problem.multipliedA(),
                problem.outType(),
                execution.keepGathered(),
                execution.workers().compute(),
                execution.workers().comm(),
                cut(first),
                null,
                slowMembers,
                problem.gathers()
                        ? null
                        : new Sums(problem.kParts(first), problem.sums().all(), execution.order()));
    }

    /** The writer of plans to be priced; auto is the own kernel of a machine that has one. */
    public PlanWriter writer() {
        PlanWriter asked = OptionValues.writer(problem.op(), execution.algorithm());
        return asked == Algorithm.AUTO ? Algorithm.MESH_PUSH : asked;
    }
}
