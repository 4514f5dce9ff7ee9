package dev.weft.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Makes records by hand: ranks that pull every chunk of their group's other ranks and multiply
 * shard after shard, in time, so that there is nothing to advise. Tests change one thing of it.
 */
public final class RecordMaker {

    static final int SHARD_ROWS = 256;
    static final int K = 32;
    static final long SHARD_BYTES = 2L * K * SHARD_ROWS;

    /** Of one shard. */
    static final long PRODUCT_NS = 400_000;

    private int ranks = 4;
    private int groups = 1;
    private String order;
    private String requested = "auto";
    private String algorithm = "mesh-pull";
    private List<Integer> hosts = List.of(2, 2);
    private String device = "cpu";
    private String machine;
    private int lanes = 1;
    private int iterations = 3;
    private double computeUs = 1500;
    private double commUs = 400;
    private double sequentialUs = 2100;
    private List<Double> pipelinedUs = List.of(1700.0, 1700.0, 1700.0);
    private Verification verification =
            new Verification(Promise.BITWISE, true, true, true, null, 1e-6, 1e-7, 64, 64, false, 0);
    private String label;
    private int chunks = 4;
    private long chunkNs = 30_000;
    private long waitNs;
    private int lateRank = -1;
    private long lateNs;
    private boolean estimated;
    private boolean inPlace;

    public RecordMaker ranks(int count, int inGroups) {
        ranks = count;
        groups = inGroups;
        return this;
    }

    /** Products that are summed over ranks, in this order. */
    RecordMaker sums(String inOrder) {
        order = inOrder;
        return this;
    }

    public RecordMaker algorithm(String ran, String wanted) {
        algorithm = ran;
        requested = wanted;
        return this;
    }

    RecordMaker hosts(Integer... sizes) {
        hosts = List.of(sizes);
        return this;
    }

    RecordMaker device(String name) {
        device = name;
        return this;
    }

    public RecordMaker simulatedOn(String name) {
        machine = name;
        device = "sim:" + name;
        verification = null;
        return this;
    }

    RecordMaker lanes(int count) {
        lanes = count;
        return this;
    }

    RecordMaker iterations(int count) {
        iterations = count;
        return this;
    }

    public RecordMaker views(double compute, double comm, double sequential, Double... pipelined) {
        computeUs = compute;
        commUs = comm;
        sequentialUs = sequential;
        pipelinedUs = List.of(pipelined);
        return this;
    }

    RecordMaker verified(Verification other) {
        verification = other;
        return this;
    }

    public RecordMaker label(String text) {
        label = text;
        return this;
    }

    /** How many a shard is cut into, and how long one takes. */
    RecordMaker chunks(int count, long ns) {
        chunks = count;
        chunkNs = ns;
        return this;
    }

    /** Before each shard of another rank. */
    RecordMaker waits(long ns) {
        waitNs = ns;
        return this;
    }

    /** A rank whose first product takes longer. */
    RecordMaker late(int rank, long ns) {
        lateRank = rank;
        lateNs = ns;
        return this;
    }

    /** The times of its products are estimated. */
    RecordMaker estimated() {
        estimated = true;
        return this;
    }

    /** Ranks read each other's rows where they lie. */
    RecordMaker inPlace() {
        inPlace = true;
        return this;
    }

    public RunRecord record() {
        List<RunRecord.Rank> all = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            all.add(rank(rank));
        }
        Samples pipelined = new Samples(pipelinedUs);
        return new RunRecord(
                new RunRecord.Problem(
                        ranks,
                        groups,
                        (long) SHARD_ROWS * ranks / groups,
                        K,
                        16,
                        "fp16",
                        "fp16",
                        "fp32",
                        "replicated",
                        false,
                        "normal",
                        19,
                        null,
                        null,
                        order == null ? RunRecord.Problem.GATHER : "matmul-allreduce",
                        order == null ? null : "8,8,8,8",
                        null),
                new RunRecord.Execution(
                        requested,
                        algorithm,
                        machine == null ? "threads" : "sim",
                        hosts,
                        device,
                        machine,
                        null,
                        null,
                        "vector-512",
                        1,
                        lanes,
                        Double.NaN,
                        5,
                        iterations,
                        order),
                new Views(
                        samples(computeUs),
                        samples(commUs),
                        samples(sequentialUs),
                        samples(sequentialUs - computeUs),
                        samples(computeUs),
                        pipelined,
                        machine != null,
                        null),
                2.0 * K * 16 * SHARD_ROWS * ranks,
                verification,
                all,
                new RunRecord.Environment(
                        "0.2.0", "25", "Linux", "amd64", 2, "2025-11-15T12:00:00Z"),
                label,
                null);
    }

    private static Samples samples(double us) {
        return new Samples(List.of(us, us, us));
    }

    private RunRecord.Rank rank(int rank) {
        int size = ranks / groups;
        int member = rank % size;
        List<Timeline.Span> moved = new ArrayList<>();
        List<Timeline.Span> products = new ArrayList<>();
        long at = product(products, member, member, 0, rank);
        for (int step = 1; step < size; step++) {
            int source = (member + step) % size;
            if (!inPlace) {
                pull(moved, source, member);
            }
            if (waitNs > 0) {
                products.add(
                        Timeline.Span.local(
                                Kind.WAIT, source, source, 0, SHARD_ROWS, at, at + waitNs));
            }
            at = product(products, source, member, at + waitNs, rank);
        }
        Timeline timeline =
                new Timeline(
                        member,
                        0,
                        at,
                        List.of(
                                new Timeline.Track("lane-0", List.copyOf(moved)),
                                new Timeline.Track("compute-0", List.copyOf(products))));
        return new RunRecord.Rank(rank, rank / size, SHARD_ROWS, SHARD_ROWS / chunks, timeline);
    }

    private void pull(List<Timeline.Span> moved, int source, int member) {
        long rows = SHARD_ROWS / chunks;
        for (int chunk = 0; chunk < chunks; chunk++) {
            long start = moved.size() * chunkNs;
            moved.add(
                    new Timeline.Span(
                            Kind.TRANSFER,
                            source,
                            source,
                            member,
                            chunk,
                            chunk * rows,
                            rows,
                            SHARD_BYTES / chunks,
                            start,
                            start + chunkNs));
        }
    }

    /** When it ends. */
    private long product(
            List<Timeline.Span> products, int source, int member, long startNs, int rank) {
        boolean longer = rank == lateRank && source == member;
        long end = startNs + PRODUCT_NS + (longer ? lateNs : 0);
        Timeline.Span span =
                Timeline.Span.local(Kind.COMPUTE, source, member, 0, SHARD_ROWS, startNs, end);
        products.add(estimated ? span.asEstimated() : span);
        return end;
    }

    /** With the spans of the last rank alone. */
    RunRecord lastRankAlone() {
        RunRecord made = record();
        return new RunRecord(
                made.problem(),
                made.execution(),
                made.views(),
                made.flopsPerRank(),
                made.verification(),
                List.of(made.ranks().getLast()),
                made.environment(),
                null,
                null);
    }

    public ShownRun shown() {
        return RunView.of(record(), "r.json");
    }

    /** The record as {@code --json} writes it. */
    public String json() {
        return json(record());
    }

    public static String json(RunRecord record) {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.useDefaultPrettyPrinter();
            json.writeStartObject();
            RunRecordJson.write(record, json);
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return text.toString();
    }
}
