package dev.weft.cli;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** What a data folder holds, as text; equal stamps mean equal bytes in the files beside them. */
final class DataStamp {

    private static final String FORMAT = "weft-data-1";

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

    /** The problem that a stamp describes; the type of C is the caller's business. */
    static ProblemSpec read(String text, DType outType) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (String line : text.split("\n")) {
            int space = line.indexOf(' ');
            if (space > 0) {
                fields.put(line.substring(0, space), line.substring(space + 1));
            }
        }
        if (!FORMAT.equals(fields.get("format")) || fields.size() != 13) {
            throw new IllegalArgumentException("expected format " + FORMAT);
        }
        long[] shards =
                Arrays.stream(fields.get("shards").split(",")).mapToLong(Long::parseLong).toArray();
        return new ProblemSpec(
                Integer.parseInt(fields.get("ranks")),
                Integer.parseInt(fields.get("groups")),
                Shards.of(shards),
                Long.parseLong(fields.get("k")),
                Long.parseLong(fields.get("n")),
                DType.of(fields.get("a")),
                DType.of(fields.get("b")),
                outType,
                Boolean.parseBoolean(fields.get("columnSharded")),
                Boolean.parseBoolean(fields.get("transposeB")),
                fields.get("data"),
                Long.parseLong(fields.get("seed")));
    }
}
