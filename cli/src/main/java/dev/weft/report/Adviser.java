package dev.weft.report;

import static dev.weft.report.Text.text;

import dev.weft.report.TimeShares.Activity;
import dev.weft.report.TimeShares.RankShares;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.tune.Quantiles;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What to try next after a run, based on its own numbers. Each rule looks at one thing and speaks
 * only if that thing cost time; the most valuable advice comes first.
 */
final class Adviser {

    /** Closer to the limit than this, another cut or algorithm gains nothing. */
    private static final double AT_THE_LIMIT = 0.95;

    /** Smaller parts of a call than this are not worth a change. */
    private static final double WORTH = 0.05;

    /** Shorter transfers are dominated by their fixed cost, a few microseconds. */
    private static final double SHORT_TRANSFER_NS = 20_000;

    private static final int FEW_CHUNKS = 16;
    private static final int FINER = 4;

    private final RunRecord record;
    private final Views views;
    private final RunRecord.Execution execution;
    private final boolean summed;
    private final String exchange;
    private final CallSpans call;
    private final List<RankShares> shares;
    private final Links links;
    private final List<Advice> advice = new ArrayList<>();

    private Adviser(RunRecord record, CallSpans call, ShownRun.Analysis analysis) {
        this.record = record;
        this.views = record.views();
        this.execution = record.execution();
        this.summed = record.problem().isSummed();
        this.exchange = record.problem().exchange();
        this.call = call;
        this.shares = analysis.shares();
        this.links = analysis.links();
    }

    static List<Advice> of(RunRecord record, CallSpans call, ShownRun.Analysis analysis) {
        Adviser adviser = new Adviser(record, call, analysis);
        if (adviser.isUnsure()) {
            adviser.measureLonger();
            return List.copyOf(adviser.advice);
        }
        adviser.overlap();
        adviser.algorithm();
        adviser.chunks();
        adviser.lanes();
        adviser.straggler();
        adviser.limit();
        return List.copyOf(adviser.advice);
    }

    private void add(String title, String reason, Object... values) {
        advice.add(new Advice(title, text(reason, values)));
    }

    private double pipelinedUs() {
        return views.pipelined().median();
    }

    private double limitPercent() {
        return 100 * views.limitFraction();
    }

    private boolean atTheLimit() {
        return views.limitFraction() >= AT_THE_LIMIT;
    }

    private void overlap() {
        double lost = pipelinedUs() - views.sequential().median();
        // The sequential view of sums may have other bits than the run; then it is no alternative.
        boolean comparable = !execution.isSequential() && !execution.sumsUnlikeSequential();
        boolean certain = views.predicted() || Conclusion.isLost(views);
        if (comparable && certain && lost > WORTH * pipelinedUs()) {
            add(
                    "Do not overlap here: --algorithm sequential",
                    "Pipelined took %s and one after the other %s, and that is not"
                            + " noise: the %s (%s alone) is too small a part to be worth hiding.",
                    us(pipelinedUs()),
                    us(views.sequential().median()),
                    exchange,
                    us(views.commOnly().median()));
        }
    }

    private void algorithm() {
        boolean chosen = execution.requestedAlgorithm().equals("auto");
        if (atTheLimit() || chosen && !record.simulated()) {
            return;
        }
        boolean sharesMemory = execution.hosts().size() == 1 && execution.device().equals("cpu");
        boolean byRank = summed && !execution.sumsUnlikeSequential();
        if (sharesMemory && !byRank && links.bytes() > 0 && !links.inPlace()) {
            add(
                    "Move nothing: --algorithm direct",
                    "All ranks share one memory, yet %s went from rank to rank in this"
                            + " call, and pipelined reached %.0f%% of its limit. direct multiplies"
                            + " %s in place.",
                    Text.bytes(links.bytes()),
                    limitPercent(),
                    summed ? "all parts of K" : "rows");
        } else if (execution.algorithm().equals("ring") && groupSize() > 2 && !summed) {
            add(
                    "Halve the path: --algorithm bidirectional-ring",
                    "In a ring the last chunk makes %d hops; in both directions at once it makes"
                            + " %d.",
                    groupSize() - 1,
                    groupSize() / 2);
        } else if (!chosen && !execution.device().startsWith("cuda")) {
            add(
                    "Let Weft choose: --algorithm auto",
                    "%s was requested and reached %.0f%% of its limit; auto prices every"
                            + " algorithm and cut for this problem.",
                    execution.algorithm(),
                    limitPercent());
        }
    }

    private int groupSize() {
        return record.problem().largestGroup();
    }

    private void chunks() {
        double[] transferNs = transfersNs();
        long chunks = chunksPerSource();
        if (transferNs.length == 0 || atTheLimit()) {
            return;
        }
        double chunkNs = Quantiles.median(transferNs);
        double waiting = share(Activity.WAIT);
        boolean cuttable = largestShard() >= chunks * FINER;
        if (chunks <= FEW_CHUNKS && waiting > WORTH && cuttable) {
            add(
                    "Cut finer: --splits-per-rank " + chunks * FINER,
                    "A shard came in %d chunks of %s each, and ranks waited for %s in %.1f%% of"
                            + " the call. The first product of a peer's rows cannot begin before a"
                            + " whole chunk is there: a quarter of the chunk, a quarter of that"
                            + " wait.",
                    chunks,
                    Text.time(chunkNs),
                    summed ? "sums" : "rows",
                    100 * waiting);
        } else if (chunks > FINER && chunkNs < SHORT_TRANSFER_NS) {
            add(
                    "Cut coarser: --splits-per-rank " + Math.max(1, chunks / FINER),
                    "A chunk took a median of %s, %d chunks a shard: what every transfer costs"
                            + " besides its bytes (a signal, a wait, a call) is a large part of"
                            + " that.",
                    Text.time(chunkNs),
                    chunks);
        }
    }

    private long largestShard() {
        return record.ranks().stream().mapToLong(RunRecord.Rank::shardRows).max().orElse(0);
    }

    /** The chunks of the largest shard. */
    private long chunksPerSource() {
        return record.ranks().stream()
                .filter(rank -> rank.chunkRows() > 0)
                .mapToLong(rank -> Math.ceilDiv(rank.shardRows(), rank.chunkRows()))
                .max()
                .orElse(1);
    }

    private double[] transfersNs() {
        return IntStream.range(0, call.size())
                .mapToObj(call::span)
                .filter(span -> span.kind() == Kind.TRANSFER && span.to() >= 0)
                .mapToDouble(span -> span.endNs() - span.startNs())
                .toArray();
    }

    /** The mean share of the call that ranks spent on it. */
    private double share(Activity activity) {
        double sum =
                shares.stream()
                        .flatMap(rank -> rank.parts().stream())
                        .filter(share -> share.kind() == activity)
                        .mapToDouble(TimeShares.Share::ns)
                        .sum();
        return shares.isEmpty() || call.endNs() == 0 ? 0 : sum / shares.size() / call.endNs();
    }

    private void lanes() {
        double comm = views.commOnly().median();
        double compute = views.computeOnly().median();
        int lanes = execution.lanes();
        boolean oneHost = execution.hosts().size() == 1;
        boolean threads = execution.device().equals("cpu");
        if (!summed && comm > compute && lanes == 1 && groupSize() > 2 && oneHost && threads) {
            add(
                    "Use two lanes: --comm-blocks 2",
                    "Transfers alone took %s and the product alone %s, and one lane per rank moves"
                            + " all chunks: it was busy for %.0f%% of the call.",
                    us(comm),
                    us(compute),
                    100 * busyLane());
        }
    }

    private double busyLane() {
        double most =
                call.ranks().stream()
                        .flatMap(rank -> rank.tracks().stream())
                        .mapToDouble(Adviser::movingNs)
                        .max()
                        .orElse(0);
        return call.endNs() == 0 ? 0 : Math.min(1, most / call.endNs());
    }

    private static double movingNs(Timeline.Track track) {
        return track.spans().stream()
                .filter(span -> span.kind() == Kind.TRANSFER)
                .mapToDouble(span -> span.endNs() - span.startNs())
                .sum();
    }

    private void straggler() {
        double[] ends = call.ranks().stream().mapToDouble(CallSpans.RankSpans::endNs).toArray();
        if (ends.length < 3) {
            return;
        }
        int at =
                IntStream.range(0, ends.length)
                        .reduce((a, b) -> ends[b] > ends[a] ? b : a)
                        .orElseThrow();
        double late = ends[at] - Quantiles.median(ends);
        // In a chain, the last rank always ends last.
        if (!summed && late > 2 * WORTH * call.endNs()) {
            add(
                    "Look at rank " + call.ranks().get(at).rank(),
                    "It was done %s after the median rank, %.0f%% of the call: every rank"
                            + " multiplies the same rows, so its cores, its memory or its links are"
                            + " slower or shared.",
                    Text.time(late),
                    100 * late / call.endNs());
        }
    }

    private void limit() {
        if (!atTheLimit()) {
            return;
        }
        double comm = views.commOnly().median();
        double compute = views.computeOnly().median();
        if (comm > compute) {
            add(
                    "Move fewer bytes, or faster",
                    "Pipelined is at %.0f%% of its limit, and that is the %s: %s alone against"
                            + " %s for the product. %s, faster links or fewer ranks help; another"
                            + " cut does not.",
                    limitPercent(),
                    exchange,
                    us(comm),
                    us(compute),
                    summed
                            ? "More of K on each rank"
                            : text("A narrower type of A (%s now)", record.problem().aDtype()));
        } else {
            boolean workers = execution.device().equals("cpu");
            add(
                    "Multiply faster",
                    "Pipelined is at %.0f%% of its limit, and that is the product: %s alone against"
                            + " %s for the %s. More ranks%s or %s help; another"
                            + " cut does not.",
                    limitPercent(),
                    us(compute),
                    us(comm),
                    exchange,
                    summed ? "" : " with column-sharded B",
                    workers ? "more compute workers" : "a faster device");
        }
    }

    /** Whether the run is no basis for advice: nothing fits a verdict that there is none. */
    private boolean isUnsure() {
        return !record.simulated() && (!(views.noise() <= WORTH) || views.hasNoLimit());
    }

    private void measureLonger() {
        int rounds = Math.max(10, 4 * execution.iterations());
        String title = "Measure longer: --iterations " + rounds;
        if (Double.isNaN(views.noise())) {
            add(
                    title,
                    "%d rounds are too few to tell differences from noise.",
                    execution.iterations());
        } else if (views.hasNoLimit()) {
            add(
                    title,
                    "Pipelined seems faster than its limit (%s): the views cannot be compared.",
                    views.overLimit());
        } else {
            add(
                    title,
                    "What overlap saves is known to +-%.0f%% only: smaller differences mean"
                            + " nothing.",
                    100 * views.noise());
        }
    }

    private static String us(double us) {
        return Text.time(us * 1e3);
    }
}
