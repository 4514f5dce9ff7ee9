package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RhsOption;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.process.SafeText;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a data folder holds, as text; equal stamps mean equal bytes in the files next to them. */
public final class DataStamp {

    private static final String FORMAT = "weft-data-2";

    /** While files are being written, or after the writer was killed. */
    private static final String UNFINISHED = "weft-data-unfinished";

    /** Present if each rank has a part of K. */
    private static final String K_PARTS = "kParts";

    /** A seed may be any 64-bit number. */
    private static final String NUMBER = "-?[0-9]{1,19}";

    private DataStamp() {}

    public static String write(ProblemSpec spec, boolean withGolden) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("format", FORMAT);
        fields.put("ranks", spec.ranks());
        fields.put("groups", groups(spec));
        fields.put("shards", spec.shards());
        fields.put("k", spec.k());
        if (!spec.gathers()) {
            fields.put(K_PARTS, spec.sums().kParts());
        }
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

    /** The number of groups of consecutive ranks, or their lists. */
    private static Object groups(ProblemSpec spec) {
        ReplicaGroups groups = spec.replicaGroups();
        return groups.isEqual(spec.ranks()) ? groups.count() : groups;
    }

    /** Written before files of that many ranks are made or deleted. */
    static String unfinished(int ranks, boolean golden) {
        return "format " + UNFINISHED + "\nranks " + ranks + "\ngolden " + golden + "\n";
    }

    /**
     * The files that a stamp covers.
     *
     * @param golden whether golden is among them
     */
    record Extent(int ranks, boolean golden) {}

    /** Null if the text is not a stamp. */
    static Extent extent(String text) {
        Map<String, String> fields = fields(text);
        String format = fields.getOrDefault("format", "");
        String ranks = fields.getOrDefault("ranks", "");
        String golden = fields.getOrDefault("golden", "");
        if (!List.of(FORMAT, UNFINISHED).contains(format)
                || !ranks.matches("[0-9]{1,4}")
                || !golden.matches("true|false")) {
            return null;
        }
        return new Extent(Integer.parseInt(ranks), golden.equals("true"));
    }

    private static Map<String, String> fields(String text) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (String line : text.split("\n")) {
            int space = line.indexOf(' ');
            if (space > 0) {
                fields.put(line.substring(0, space), line.substring(space + 1));
            }
        }
        return fields;
    }

    /**
     * The problem that a stamp describes.
     *
     * @param op what was done with the data
     * @param outType the type of C
     * @throws UsageException with one line, if it describes none
     */
    static ProblemSpec read(String text, String op, DType outType) {
        Map<String, String> fields = fields(text);
        if (UNFINISHED.equals(fields.get("format"))) {
            throw new UsageException("the data was not finished: run gen-data or run again");
        }
        if (!FORMAT.equals(fields.get("format"))) {
            throw new UsageException("expected format " + FORMAT);
        }
        boolean summed = !op.equals(ProblemSpec.GATHER);
        if (summed != fields.containsKey(K_PARTS)) {
            throw new UsageException(
                    summed
                            ? "the outputs are of --op %s, but the data is not cut by K: run it"
                                    + " again"
                            : "the data is cut by K, but no run with --op has written outputs: run"
                                    + " it first",
                    op);
        }
        // Checked like the options that made it: whatever it says, no other problem is read.
        ProblemOptions options = new ProblemOptions();
        options.ranks = Math.clamp(number(fields, "ranks"), -1, Integer.MAX_VALUE);
        String groups = field(fields, "groups", "-?[0-9,/]{1,99999}");
        if (groups.matches(NUMBER)) {
            options.groups.value = Math.clamp(number(fields, "groups"), -1, Integer.MAX_VALUE);
        } else {
            options.groups.lists = groups;
        }
        options.op = op;
        options.shards = sizes(fields, "shards");
        options.k = number(fields, "k");
        options.kParts = summed ? sizes(fields, K_PARTS) : null;
        options.n = number(fields, "n");
        options.aDtype = field(fields, "a", "[a-z0-9]{1,9}");
        options.bDtype = field(fields, "b", "[a-z0-9]{1,9}");
        options.outDtype = outType.label();
        options.rhs = new RhsOption(flag(fields, "columnSharded"));
        options.transposeB = flag(fields, "transposeB");
        options.data = field(fields, "data", "[a-z0-9]{1,9}");
        options.seed = number(fields, "seed");
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
     * @param value null if there is none
     */
    private static UsageException wrong(String name, String value) {
        String shown = value == null ? "missing" : "'" + SafeText.excerpt(value) + "'";
        return new UsageException(name + " is " + shown + ": expected what gen-data writes");
    }

    private static long[] sizes(Map<String, String> fields, String name) {
        String sizes = field(fields, name, "[0-9,]+");
        try {
            return Arrays.stream(sizes.split(",", -1)).mapToLong(Long::parseLong).toArray();
        } catch (NumberFormatException e) {
            throw wrong(name, sizes);
        }
    }

    private static long number(Map<String, String> fields, String name) {
        String number = field(fields, name, NUMBER);
        try {
            return Long.parseLong(number);
        } catch (NumberFormatException e) {
            throw wrong(name, number);
        }
    }

    private static boolean flag(Map<String, String> fields, String name) {
        return field(fields, name, "true|false").equals("true");
    }
}
