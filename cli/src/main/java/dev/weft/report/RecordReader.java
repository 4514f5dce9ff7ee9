package dev.weft.report;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.json.JsonObject;
import dev.weft.op.CallLog;
import dev.weft.op.Timeline;
import dev.weft.tensor.DType;
import dev.weft.text.SafeText;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Reads records that {@code --json} wrote. An invalid record is an {@link IllegalArgumentException}
 * with a one-line message that says where.
 */
public final class RecordReader {

    /** The schema of a sweep's record. */
    public static final String SWEEP = "weft.sweep/1";

    private static final int MAX_RANKS = 1 << 20;
    private static final int MAX_ROUNDS = Integer.MAX_VALUE;

    private RecordReader() {}

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

    /** What a file holds: a run, a sweep as it was written, or a rank's calls. */
    public record Read(RunRecord run, PageData.Sweep sweep, String machine, CallsRecord calls) {}

    /** Reads a record of any kind. */
    public static Read read(Path file) throws IOException {
        return read(file.getFileName().toString(), Files.newInputStream(file));
    }

    static Read read(String name, InputStream in) {
        JsonObject json = JsonObject.read(name, in, (field, parser) -> spans(name, field, parser));
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

    private static CallsRecord calls(JsonObject json) {
        int ranks = json.count("ranks", 1, MAX_RANKS);
        int rank = json.count("rank", 0, ranks - 1);
        List<CallsRecord.Call> calls =
                json.objects("calls").stream()
                        .map(
                                call ->
                                        new CallsRecord.Call(
                                                call.text("name"), timeline(call, rank, ranks)))
                        .toList();
        return new CallsRecord(rank, ranks, some(json, "calls", calls));
    }

    private static RunRecord run(JsonObject json) {
        RunRecord.Problem problem = problem(json.object("problem"));
        RunRecord.Execution execution = execution(json);
        Views views = views(json.object("views"), execution.machine() != null);
        return new RunRecord(
                problem,
                execution,
                views,
                json.number("tflops") * 1e6 * views.us(views.pipelined()),
                json.hasValue("verification") ? verification(json.object("verification")) : null,
                ranks(json, problem),
                environment(json.object("environment")),
                json.textOrNull("label"),
                json.hasValue("predicted") ? predicted(json.object("predicted")) : null);
    }

    private static RunRecord.Predicted predicted(JsonObject json) {
        return new RunRecord.Predicted(json.text("machine"), views(json.object("views"), true));
    }

    private static RunRecord.Problem problem(JsonObject json) {
        int ranks = json.count("ranks", 1, MAX_RANKS);
        int groups = json.count("groups", 1, ranks);
        String lists = json.textOrNull("replicaGroups");
        if (lists != null) {
            checkLists(json, lists, ranks, groups);
        } else if (ranks % groups != 0) {
            throw json.refusal("groups", "a divisor of " + ranks);
        }
        return new RunRecord.Problem(
                ranks,
                groups,
                json.size("m"),
                json.size("k"),
                json.size("n"),
                type(json, "aDtype"),
                type(json, "bDtype"),
                type(json, "outDtype"),
                json.text("rhs"),
                json.flag("transposeB"),
                json.text("data"),
                json.whole("seed"),
                lists,
                json.textOrNull("epilogue"),
                // Records of earlier versions have none.
                json.hasValue("op") ? json.text("op") : RunRecord.Problem.GATHER,
                json.textOrNull("kParts"),
                json.textOrNull("scales"));
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

    private static String type(JsonObject json, String field) {
        try {
            return DType.of(SafeText.excerpt(json.text(field))).label();
        } catch (IllegalArgumentException e) {
            throw json.wrong(field, "is wrong: " + e.getMessage());
        }
    }

    private static RunRecord.Execution execution(JsonObject json) {
        return new RunRecord.Execution(
                json.text("requestedAlgorithm"),
                json.text("algorithm"),
                json.text("launcher"),
                some(json, "hosts", json.counts("hosts", 1, MAX_RANKS)),
                json.text("device"),
                json.textOrNull("machine"),
                json.hasValue("linkBitsPerSecond") ? json.whole("linkBitsPerSecond") : null,
                json.textOrNull("peers"),
                json.text("engine"),
                json.count("computeWorkers", 0, Integer.MAX_VALUE),
                json.count("lanes", 0, Integer.MAX_VALUE),
                json.hasValue("progressCpu") ? json.number("progressCpu") : Double.NaN,
                json.count("warmup", 0, MAX_ROUNDS),
                json.count("iterations", 1, MAX_ROUNDS),
                json.textOrNull("order"));
    }

    private static Views views(JsonObject json, boolean predicted) {
        JsonObject sequential = json.object("sequential");
        return new Views(
                samples(json.object("computeOnly")),
                samples(json.object("commOnly")),
                samples(sequential),
                samples(sequential.object("comm")),
                samples(sequential.object("compute")),
                samples(json.object("pipelined")),
                predicted,
                json.hasValue("baseline") ? samples(json.object("baseline")) : null);
    }

    private static Samples samples(JsonObject json) {
        return new Samples(some(json, "samplesUs", json.numbers("samplesUs")));
    }

    private static <T> List<T> some(JsonObject json, String field, List<T> elements) {
        if (elements.isEmpty()) {
            throw json.refusal(field, "at least one element");
        }
        return elements;
    }

    private static Verification verification(JsonObject json) {
        String promise = json.text("promise");
        String shown = SafeText.excerpt(promise);
        return new Verification(
                labelled(Promise.values(), promise)
                        .orElseThrow(() -> json.wrong("promise", "is unknown: " + shown)),
                json.flagOrNull("gatheredExact"),
                json.flag("bitwiseEqualToUnfused"),
                json.flag("withinBound"),
                json.flagOrNull("seedRulePassed"),
                json.anyNumber("maxAbsErr"),
                json.anyNumber("relErr"),
                json.size("checkedRows"),
                json.size("totalRows"),
                json.flag("freivalds"),
                // Records of earlier versions have none.
                json.hasValue("notFinite") ? json.size("notFinite") : 0);
    }

    private static List<RunRecord.Rank> ranks(JsonObject json, RunRecord.Problem problem) {
        List<RunRecord.Rank> ranks = new ArrayList<>();
        List<List<Integer>> lists = problem.lists();
        Set<Integer> seen = new HashSet<>();
        for (JsonObject rank : json.objects("ranks")) {
            int number = rank.count("rank", 0, problem.ranks() - 1);
            if (!seen.add(number)) {
                throw rank.wrong("rank", "is " + number + ", as that of another");
            }
            int group = rank.count("group", 0, problem.groups() - 1);
            int groupSize = lists.isEmpty() ? problem.largestGroup() : lists.get(group).size();
            int member =
                    lists.isEmpty() ? number - group * groupSize : lists.get(group).indexOf(number);
            if (member < 0 || member >= groupSize) {
                throw rank.refusal("group", "the group of rank " + number);
            }
            ranks.add(
                    new RunRecord.Rank(
                            number,
                            group,
                            rank.size("shardRows"),
                            rank.size("chunkRows"),
                            timeline(rank, member, groupSize)));
        }
        return some(json, "ranks", ranks);
    }

    private static Timeline timeline(JsonObject json, int rank, int groupSize) {
        return new Timeline(
                rank,
                json.size("startNs"),
                json.size("elapsedNs"),
                json.objects("tracks").stream().map(track -> track(track, groupSize)).toList());
    }

    /** Spans of one track, as {@link #spans} read them. */
    private record Spans(List<Timeline.Span> list) {}

    private static Timeline.Track track(JsonObject json, int groupSize) {
        Spans spans = json.required("spans", Spans.class, "an array of spans");
        for (Timeline.Span span : spans.list()) {
            if (Math.max(span.source(), Math.max(span.peer(), span.to())) >= groupSize) {
                throw json.wrong(
                        "spans", "name a rank that is not among the " + groupSize + ": " + span);
            }
        }
        return new Timeline.Track(json.text("name"), spans.list());
    }

    private static Object spans(String name, String field, JsonParser parser) throws IOException {
        if (!field.equals("spans") || !isOfTrack(parser.getParsingContext())) {
            return null;
        }
        List<Timeline.Span> spans = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            try {
                spans.add(span(parser));
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException(
                        "%s: span %s in line %s %s"
                                .formatted(
                                        name,
                                        spans.size(),
                                        parser.currentLocation().getLineNr(),
                                        e.getMessage()),
                        e);
            }
        }
        return new Spans(List.copyOf(spans));
    }

    /** Whether the array that begins is a field of an element of {@code tracks}. */
    private static boolean isOfTrack(JsonStreamContext array) {
        JsonStreamContext track = array.getParent();
        JsonStreamContext tracks = track == null ? null : track.getParent();
        return tracks != null
                && tracks.inArray()
                && "tracks".equals(tracks.getParent().getCurrentName());
    }

    private static Timeline.Span span(JsonParser parser) throws IOException {
        Timeline.Kind kind = null;
        long[] numbers = new long[SPAN_FIELDS.size()];
        Arrays.fill(numbers, UNTOLD);
        expect(parser, JsonToken.START_OBJECT, "has");
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String field = parser.currentName();
            int at = SPAN_FIELDS.indexOf(field);
            parser.nextToken();
            if (field.equals("kind")) {
                expect(parser, JsonToken.VALUE_STRING, "has as its kind");
                kind = kind(parser.getText());
            } else if (at >= 0) {
                expect(parser, JsonToken.VALUE_NUMBER_INT, "has as its " + field);
                numbers[at] = number(parser, at);
            } else {
                parser.skipChildren();
            }
        }
        if (kind == null) {
            throw new IllegalArgumentException("has no kind");
        }
        for (int i = 0; i < numbers.length; i++) {
            boolean optional = OF_TRANSFERS.contains(SPAN_FIELDS.get(i));
            if (numbers[i] == UNTOLD && !optional) {
                throw new IllegalArgumentException("has no " + SPAN_FIELDS.get(i));
            }
        }
        return span(kind, numbers);
    }

    private static long number(JsonParser parser, int at) throws IOException {
        String field = SPAN_FIELDS.get(at);
        long least = MAY_BE_NONE.contains(field) ? -1 : 0;
        long most = at < NUMBERS_OF_FEW ? MAX_RANKS : JsonObject.MOST;
        boolean fits = parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER;
        if (!fits || parser.getLongValue() < least || parser.getLongValue() > most) {
            throw new IllegalArgumentException(
                    "has %s %s: expected %s to %s"
                            .formatted(field, SafeText.excerpt(parser.getText()), least, most));
        }
        return parser.getLongValue();
    }

    private static Timeline.Span span(Timeline.Kind kind, long[] numbers) {
        if (numbers[8] < numbers[7]) {
            throw new IllegalArgumentException(
                    "ends at " + numbers[8] + ", before its start at " + numbers[7]);
        }
        return new Timeline.Span(
                kind,
                (int) numbers[0],
                (int) numbers[1],
                (int) Math.max(-1, numbers[2]),
                (int) Math.max(-1, numbers[3]),
                numbers[4],
                numbers[5],
                Math.max(0, numbers[6]),
                numbers[7],
                numbers[8]);
    }

    private static final List<String> SPAN_FIELDS =
            List.of("source peer to chunk firstRow rows bytes startNs endNs".split(" "));

    /** The first of them. */
    private static final int NUMBERS_OF_FEW = 4;

    private static final Set<String> OF_TRANSFERS = Set.of("to", "chunk", "bytes");
    private static final Set<String> MAY_BE_NONE = Set.of("to", "chunk");
    private static final long UNTOLD = Long.MIN_VALUE;

    private static Timeline.Kind kind(String label) {
        return labelled(Timeline.Kind.values(), label)
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "has the unknown kind " + SafeText.excerpt(label)));
    }

    private static <E extends Enum<E>> Optional<E> labelled(E[] constants, String label) {
        return Arrays.stream(constants)
                .filter(constant -> JsonObject.label(constant).equals(label))
                .findFirst();
    }

    private static void expect(JsonParser parser, JsonToken token, String has) throws IOException {
        if (parser.currentToken() != token) {
            throw new IllegalArgumentException(
                    has + " " + parser.currentToken() + ": expected " + token);
        }
    }

    private static RunRecord.Environment environment(JsonObject json) {
        return new RunRecord.Environment(
                json.text("weft"),
                json.text("java"),
                json.text("os"),
                json.text("arch"),
                json.count("cores", 1, Integer.MAX_VALUE),
                json.text("started"));
    }
}
