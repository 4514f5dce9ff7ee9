package dev.weft.report;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.Timeline;
import java.util.List;

/**
 * All that is kept of a run; schema {@code weft.run/1}, documented in docs/run-record.md.
 *
 * @param verification null where a simulated run multiplied nothing
 * @param label what the user calls it; null where nothing was said
 * @param predicted what another machine would take; null where none was named
 */
public record RunRecord(
        Problem problem,
        Execution execution,
        Views views,
        double flopsPerRank,
        Verification verification,
        List<Rank> ranks,
        Environment environment,
        String label,
        Predicted predicted) {

    public static final String SCHEMA = "weft.run/1";

    public RunRecord {
        ranks = List.copyOf(ranks);
    }

    /** Beside which no other machine was named. */
    public RunRecord(
            Problem problem,
            Execution execution,
            Views views,
            double flopsPerRank,
            Verification verification,
            List<Rank> ranks,
            Environment environment,
            String label) {
        this(
                problem,
                execution,
                views,
                flopsPerRank,
                verification,
                ranks,
                environment,
                label,
                null);
    }

    /** A copy with what another machine would take. */
    public RunRecord beside(Predicted newPredicted) {
        return with(label, newPredicted);
    }

    public RunRecord labelled(String newLabel) {
        return with(newLabel, predicted);
    }

    private RunRecord with(String newLabel, Predicted newPredicted) {
        return new RunRecord(
                problem,
                execution,
                views,
                flopsPerRank,
                verification,
                ranks,
                environment,
                newLabel,
                newPredicted);
    }

    /** Whether the times were predicted on a model of a machine. */
    public boolean simulated() {
        return execution.machine() != null;
    }

    /** Teraflops per second of one rank's product in the pipelined call. */
    public double tflops() {
        return flopsPerRank / views.pipelined().median() / 1e6;
    }

    /**
     * What was computed.
     *
     * @param replicaGroups the ranks of each group, as {@link ReplicaGroups#parse} reads them; null
     *     where all ranks are in equal groups of consecutive ones
     * @param epilogue steps done to the elements of the product, with commas between; null where
     *     there are none
     * @param op the operator's name on the command line
     * @param kParts of K on each rank of the first group, with commas, where their products are
     *     summed; null where rows of A are gathered
     */
    public record Problem(
            int ranks,
            int groups,
            long m,
            long k,
            long n,
            String aDtype,
            String bDtype,
            String outDtype,
            String rhs,
            boolean transposeB,
            String data,
            long seed,
            String replicaGroups,
            String epilogue,
            String op,
            String kParts) {

        /** Of rows that are gathered. */
        public static final String GATHER = "allgather-matmul";

        /** Whether ranks have a part of K each, whose products are summed. */
        public boolean isSummed() {
            return kParts != null;
        }

        /** What happens between the ranks, in a word. */
        public String exchange() {
            return isSummed() ? "reduction" : "gather";
        }

        /** What {@link #replicaGroups} says of groups in a world. */
        public static String lists(ReplicaGroups groups, int ranks) {
            return groups.isEqual(ranks) ? null : groups.toString();
        }

        /** The lists of all groups; empty where they are equal ones of consecutive ranks. */
        List<List<Integer>> lists() {
            return replicaGroups == null ? List.of() : ReplicaGroups.parse(replicaGroups).groups();
        }

        /** Ranks that are in a group. */
        int members() {
            return replicaGroups == null ? ranks : lists().stream().mapToInt(List::size).sum();
        }

        /** Ranks of the largest group. */
        int largestGroup() {
            return lists().stream().mapToInt(List::size).max().orElse(ranks / groups);
        }
    }

    /**
     * How it was run.
     *
     * @param requestedAlgorithm what was asked for; {@code algorithm} is what ran
     * @param hosts ranks on each host, in rank order
     * @param device {@code cpu}, {@code cuda:} and the GPU's name, or {@code sim:} and the
     *     simulated machine's
     * @param machine the machine on which the run was simulated; null for a real run
     * @param linkBitsPerSecond at which a rank's chunks were made to travel; null if as fast as
     *     they could
     * @param peers where a GPU's peers are, {@code device} or {@code host}, or {@code staged} where
     *     they are on other hosts; null on the CPU
     * @param computeWorkers threads per rank; on a GPU thread blocks, 0 where a library chooses
     * @param lanes threads or copy streams per rank
     * @param progressCpu cores that the thread which moves messages took up during pipelined calls,
     *     on the rank where it took most; NaN where there is none
     * @param order in which products are summed; null where rows of A are gathered
     */
    public record Execution(
            String requestedAlgorithm,
            String algorithm,
            String launcher,
            List<Integer> hosts,
            String device,
            String machine,
            Long linkBitsPerSecond,
            String peers,
            String engine,
            int computeWorkers,
            int lanes,
            double progressCpu,
            int warmup,
            int iterations,
            String order) {

        public Execution {
            hosts = List.copyOf(hosts);
        }

        /** Whether sums have another order than those of the sequential view, which are by rank. */
        public boolean sumsUnlikeSequential() {
            return "whole".equals(order);
        }
    }

    /** One rank: its rows and what it did in the pipelined call nearest to the median. */
    public record Rank(int rank, int group, long shardRows, long chunkRows, Timeline timeline) {}

    /** The views of the same problem on a model of another machine, priced by the simulator. */
    public record Predicted(String machine, Views views) {}

    /** Where it ran, without names of hosts, users or paths. */
    public record Environment(
            String weft, String java, String os, String arch, int cores, String started) {}
}
