package dev.weft.report;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.json.JsonField;
import dev.weft.trace.Timeline;
import java.util.List;

/**
 * Everything that is kept of a run; schema {@code weft.run/1}, documented in docs/run-record.md.
 *
 * @param verification null if a simulated run multiplied nothing
 * @param label the user's name for it; null if none was given
 * @param predicted the predicted times of another machine; null if none was named
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

    static final int MAX_RANKS = 1 << 20;

    public RunRecord {
        ranks = List.copyOf(ranks);
    }

    /** A copy with predictions for another machine. */
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
        return flopsPerRank / views.us(views.pipelined()) / 1e6;
    }

    /**
     * What was computed.
     *
     * @param replicaGroups the ranks of each group, as {@link ReplicaGroups#parse} reads them; null
     *     if all ranks are in equal groups of consecutive ranks
     * @param epilogue steps that are applied to the elements of the product, separated by commas;
     *     null if there are none
     * @param op the operator's name on the command line
     * @param kParts the parts of K on the ranks of the first group, separated by commas, if their
     *     products are summed; null if rows of A are gathered
     * @param scales what shares a scale if A and B are quantized to 8 bits: tensor, row or block;
     *     otherwise null
     */
    public record Problem(
            @JsonField(least = 1, most = MAX_RANKS) int ranks,
            @JsonField(least = 1) int groups,
            long m,
            long k,
            long n,
            String aDtype,
            String bDtype,
            String outDtype,
            String rhs,
            boolean transposeB,
            String data,
            @JsonField(least = JsonField.ANY) long seed,
            @JsonField(optional = true) String replicaGroups,
            @JsonField(optional = true) String epilogue,
            @JsonField(optional = true) String op,
            @JsonField(optional = true) String kParts,
            @JsonField(optional = true) String scales) {

        /** The operator that gathers rows. */
        public static final String GATHER = "allgather-matmul";

        public Problem {
            // Records of earlier versions have none.
            op = op == null ? GATHER : op;
        }

        /** Whether each rank has a part of K, and their products are summed. */
        public boolean isSummed() {
            return kParts != null;
        }

        /** What happens between the ranks, in a word. */
        public String exchange() {
            return isSummed() ? "reduction" : "gather";
        }

        /** The value of {@link #replicaGroups} for groups in a world. */
        public static String lists(ReplicaGroups groups, int ranks) {
            return groups.isEqual(ranks) ? null : groups.toString();
        }

        /** The lists of all groups; empty if they are equal groups of consecutive ranks. */
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
     * @param requestedAlgorithm what was requested; {@code algorithm} is what ran
     * @param hosts ranks on each host, in rank order
     * @param device {@code cpu}, {@code cuda:} and the GPU's name, or {@code sim:} and the
     *     simulated machine's
     * @param machine the machine on which the run was simulated; null for a real run
     * @param linkBitsPerSecond the rate that a rank's chunks were limited to; null for full speed
     * @param peers where a GPU's peers are, {@code device} or {@code host}, or {@code staged} if
     *     they are on other hosts; null on the CPU
     * @param computeWorkers threads per rank; on a GPU thread blocks, 0 if a library chooses
     * @param lanes threads or copy streams per rank
     * @param progressCpu cores that the thread which moves messages used during pipelined calls, on
     *     the rank where it used most; NaN if there is none
     * @param order the order in which products are summed; null if rows of A are gathered
     */
    public record Execution(
            String requestedAlgorithm,
            String algorithm,
            String launcher,
            @JsonField(least = 1, most = MAX_RANKS, some = true) List<Integer> hosts,
            String device,
            @JsonField(optional = true) String machine,
            @JsonField(optional = true) Long linkBitsPerSecond,
            @JsonField(optional = true) String peers,
            String engine,
            int computeWorkers,
            int lanes,
            @JsonField(optional = true) double progressCpu,
            int warmup,
            @JsonField(least = 1) int iterations,
            @JsonField(optional = true) String order) {

        /** The algorithm without overlap. */
        public static final String SEQUENTIAL = "sequential";

        public Execution {
            hosts = List.copyOf(hosts);
        }

        /**
         * Whether the call itself gathers first, or multiplies first, and nothing is overlapped.
         */
        public boolean isSequential() {
            return algorithm.equals(SEQUENTIAL);
        }

        /** Whether sums have another order than the sequential view, which sums by rank. */
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
            String weft,
            String java,
            String os,
            String arch,
            @JsonField(least = 1) int cores,
            String started) {}
}
