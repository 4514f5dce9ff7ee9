package dev.weft.report;

import dev.weft.fabric.ReplicaGroups;
import dev.weft.json.JsonObject;
import dev.weft.json.RecordJson;
import dev.weft.process.SafeText;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.trace.CallLog;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Reads records that {@code --json} wrote. An invalid record is an {@link IllegalArgumentException}
 * with a one-line message that says where.
 */
public final class RecordReader {

    /** The schema of a sweep's record. */
    public static final String SWEEP = "weft.sweep/1";

    /** There may be millions of them. */
    private static final JsonObject.LargeArrays SPANS =
            new JsonObject.LargeArrays(
                    Pattern.compile("^(ranks|calls)\\[[0-9]+]\\.tracks\\[[0-9]+]\\.spans$"),
                    RecordReader::span);

    private RecordReader() {}

    /** What a file holds: a run, a sweep as it was written, or a rank's calls. */
    public record Read(RunRecord run, PageData.Sweep sweep, String machine, CallsRecord calls) {}

    /** Reads a record of any kind. */
    public static Read read(Path file) throws IOException {
        return read(file.getFileName().toString(), Files.newInputStream(file));
    }

    static Read read(String name, InputStream in) {
        JsonObject json = JsonObject.read(name, in, SPANS);
        String schema = json.text("schema");
        return switch (schema) {
            case RunRecord.SCHEMA -> new Read(run(json), null, null, null);
            case CallLog.SCHEMA -> new Read(null, null, null, calls(json));
            case SWEEP -> {
                json.objects("rows").forEach(RecordReader::checkRow);
                List.of("machine", "aDtype", "outDtype", "rhs").forEach(json::text);
                yield new Read(null, json::write, json.text("machine"), null);
            }
            default ->
                    throw json.wrong(
                            "schema",
                            "is %s: expected %s, %s or %s"
                                    .formatted(
                                            SafeText.excerpt(schema),
                                            RunRecord.SCHEMA,
                                            SWEEP,
                                            CallLog.SCHEMA));
        };
    }

    /** Checks what the page uses. */
    private static void checkRow(JsonObject row) {
        List.of("m", "k", "n", "ranks").forEach(row::size);
        row.text("algorithm");
        if (row.hasValue("reason")) {
            row.text("reason");
            return;
        }
        List.of("chunks", "chunkRows", "lanes").forEach(row::size);
        row.number("predictedUs");
        row.number("limitFraction");
        row.flag("best");
        for (String field : List.of("splits", "sequentialUs", "speedup")) {
            if (row.hasValue(field)) {
                row.number(field);
            }
        }
    }

    private static Timeline.Span span(JsonObject json) {
        Timeline.Span span = RecordJson.read(Timeline.Span.class, json);
        if (span.endNs() < span.startNs()) {
            throw json.refusal("endNs", "its startNs, " + span.startNs() + ", or more");
        }
        return span;
    }

    private static CallsRecord calls(JsonObject json) {
        CallsRecord calls = RecordJson.read(CallsRecord.class, json);
        json.count("rank", 0, calls.ranks() - 1);
        List<JsonObject> each = json.objects("calls");
        for (int i = 0; i < each.size(); i++) {
            checkSpans(each.get(i), calls.calls().get(i).tracks(), calls.ranks());
        }
        return calls;
    }

    private static RunRecord run(JsonObject json) {
        RunRecordJson run = RecordJson.read(RunRecordJson.class, json);
        check(run.problem(), json.object("problem"));
        RunRecordJson.Measured measured = run.measured();
        RunRecordJson.Predicted predicted = measured.predicted();
        Views views = measured.views().views(measured.execution().machine() != null);
        return new RunRecord(
                run.problem(),
                measured.execution(),
                views,
                measured.tflops() * 1e6 * views.us(views.pipelined()),
                run.verification() == null ? null : run.verification().verification(),
                ranks(run, json.objects("ranks")),
                run.environment(),
                run.label(),
                predicted == null
                        ? null
                        : new RunRecord.Predicted(
                                predicted.machine(), predicted.views().views(true)));
    }

    private static void check(RunRecord.Problem problem, JsonObject json) {
        int ranks = problem.ranks();
        int groups = json.count("groups", 1, ranks);
        if (problem.replicaGroups() != null) {
            checkLists(json, problem.replicaGroups(), ranks, groups);
        } else if (ranks % groups != 0) {
            throw json.refusal("groups", "a divisor of " + ranks);
        }
        for (String field : List.of("aDtype", "bDtype", "outDtype")) {
            try {
                if (field.equals("bDtype") && BlockType.isLabel(json.text(field))) {
                    continue;
                }
                DType.of(SafeText.excerpt(json.text(field)));
            } catch (IllegalArgumentException e) {
                throw json.wrong(field, "is wrong: " + e.getMessage());
            }
        }
    }

    private static void checkLists(JsonObject json, String lists, int ranks, int groups) {
        boolean right;
        try {
            right = ReplicaGroups.parse(lists).in(ranks).count() == groups;
        } catch (IllegalArgumentException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no groups", e);
            right = false;
        }
        if (!right) {
            throw json.wrong(
                    "replicaGroups",
                    "is %s: expected %s lists of ranks 0 to %s, such as 0,2/1,3"
                            .formatted(SafeText.excerpt(lists), groups, ranks - 1));
        }
    }

    private static List<RunRecord.Rank> ranks(RunRecordJson run, List<JsonObject> json) {
        RunRecord.Problem problem = run.problem();
        List<List<Integer>> lists = problem.lists();
        List<RunRecord.Rank> ranks = new ArrayList<>();
        Set<Integer> seen = new HashSet<>();
        for (RunRecordJson.Rank rank : run.ranks()) {
            JsonObject fields = json.get(ranks.size());
            int number = fields.count("rank", 0, problem.ranks() - 1);
            if (!seen.add(number)) {
                throw fields.wrong("rank", "is " + number + ", as that of another");
            }
            int group = fields.count("group", 0, problem.groups() - 1);
            int groupSize = lists.isEmpty() ? problem.largestGroup() : lists.get(group).size();
            int member =
                    lists.isEmpty() ? number - group * groupSize : lists.get(group).indexOf(number);
            if (member < 0 || member >= groupSize) {
                throw fields.refusal("group", "the group of rank " + number);
            }
            checkSpans(fields, rank.tracks(), groupSize);
            ranks.add(
                    new RunRecord.Rank(
                            number,
                            group,
                            rank.shardRows(),
                            rank.chunkRows(),
                            new Timeline(member, rank.startNs(), rank.elapsedNs(), rank.tracks())));
        }
        return ranks;
    }

    private static void checkSpans(JsonObject json, List<Timeline.Track> tracks, int groupSize) {
        for (int i = 0; i < tracks.size(); i++) {
            for (Timeline.Span span : tracks.get(i).spans()) {
                if (Math.max(span.source(), Math.max(span.peer(), span.to())) >= groupSize) {
                    throw json.objects("tracks")
                            .get(i)
                            .wrong(
                                    "spans",
                                    "name a rank that is not among the " + groupSize + ": " + span);
                }
            }
        }
    }
}
