package dev.weft.cli;

import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a data folder holds, as text; equal stamps mean equal bytes in the files beside them. */
final class DataStamp {

    private static final String FORMAT = "weft-data-1";
    private static final String NUMBER = "-?[0-9]{1,18}";

    /** A seed may be any number of 64 bits. */
    private static final String SEED = "-?[0-9]{1,19}";

    private static final int EXCERPT_CHARS = 60;

    private DataStamp() {}

    static String write(ProblemSpec spec, boolean withGolden) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("format", FORMAT);
        fields.put("ranks", spec.ranks());
        fields.put("groups", spec.groups());
        fields.put("shards", spec.shards());
        fields.put("k", spec.k());
        fields.put("n", spec.n());
        fields.put("a", spec.aType().label());
        fields.put("b", spec.bType().label());
        fields.put("columnSharded", spec.columnSharded());
        fields.put("transposeB", spec.transposeB());
        fields.put("data", spec.data());
        fields.put("seed", spec.seed());
        fields.put("golden", withGolden);
        StringBuilder text = new StringBuilder();
        fields.forEach((name, value) -> text.append(name).append(' ').append(value).append('\n'));
        return text.toString();
    }

    /**
     * The problem that a stamp describes; the type of C is the caller's business.
     *
     * @throws UsageException with one line, where it describes none
     */
    static ProblemSpec read(String text, DType outType) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (String line : text.split("\n")) {
            int space = line.indexOf(' ');
            if (space > 0) {
                fields.put(line.substring(0, space), line.substring(space + 1));
            }
        }
        if (!FORMAT.equals(fields.get("format"))) {
            throw new UsageException("expected format " + FORMAT);
        }
        // Checked as the options are that made it: whatever it says, no other problem is read.
        ProblemOptions options = new ProblemOptions();
        options.ranks = Math.clamp(number(fields, "ranks"), -1, Integer.MAX_VALUE);
        options.groups = Math.clamp(number(fields, "groups"), -1, Integer.MAX_VALUE);
        options.shards = shards(fields);
        options.k = number(fields, "k");
        options.n = number(fields, "n");
        options.aDtype = field(fields, "a", "[a-z0-9]{1,9}");
        options.bDtype = field(fields, "b", "[a-z0-9]{1,9}");
        options.outDtype = outType.label();
        options.rhs = flag(fields, "columnSharded") ? "column-sharded" : "replicated";
        options.transposeB = flag(fields, "transposeB");
        options.data = field(fields, "data", "[a-z0-9]{1,9}");
        options.seed = seed(fields);
        return options.spec();
    }

    private static String field(Map<String, String> fields, String name, String form) {
        String value = fields.get(name);
        if (value == null || !value.matches(form)) {
            throw wrong(name, value);
        }
        return value;
    }

    /**
     * @param value null where there is none
     */
    private static UsageException wrong(String name, String value) {
        String shown = value == null ? "missing" : "'" + excerpt(value) + "'";
        return new UsageException(name + " is " + shown + ": expected what gen-data writes");
    }

    /** Text out of a file, made fit for a message: on one line, and not too long. */
    static String excerpt(String text) {
        String head =
                text.length() <= EXCERPT_CHARS ? text : text.substring(0, EXCERPT_CHARS) + "...";
        return head.isEmpty() ? head : Main.oneLine(head);
    }

    private static long[] shards(Map<String, String> fields) {
        String[] parts = field(fields, "shards", "[0-9,]+").split(",", -1);
        if (!Arrays.stream(parts).allMatch(part -> part.matches(NUMBER))) {
            throw wrong("shards", fields.get("shards"));
        }
        return Arrays.stream(parts).mapToLong(Long::parseLong).toArray();
    }

    private static long number(Map<String, String> fields, String name) {
        return Long.parseLong(field(fields, name, NUMBER));
    }

    private static boolean flag(Map<String, String> fields, String name) {
        return field(fields, name, "true|false").equals("true");
    }

    private static long seed(Map<String, String> fields) {
        String seed = field(fields, "seed", SEED);
        try {
            return Long.parseLong(seed);
        } catch (NumberFormatException e) {
            throw wrong("seed", seed);
        }
    }
}
