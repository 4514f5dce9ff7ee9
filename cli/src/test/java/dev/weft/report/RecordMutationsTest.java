package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Records with some bytes or numbers changed at random: each gives a page and a trace, or one line
 * that refuses it, and nothing else. The seed is in the test's name and in what a failure says.
 */
class RecordMutationsTest {

    private static final int ROUNDS = 750;

    private static final List<String> VALUES =
            List.of(
                    "0",
                    "-1",
                    "1",
                    "2",
                    "3",
                    "7",
                    "1.5",
                    "-0.0",
                    "1e308",
                    "1e999",
                    "-1e999",
                    "2147483647",
                    "2147483648",
                    "1099511627776",
                    "9223372036854775807",
                    "-9223372036854775808",
                    "99999999999999999999",
                    "null",
                    "true",
                    "\"x\"",
                    "[]",
                    "{}",
                    "[{}]",
                    "\"\\ud800\"",
                    "\"</script>\"");

    private static final String SWEEP =
            """
            {
              "schema" : "weft.sweep/1",
              "machine" : "trn2",
              "aDtype" : "fp16",
              "outDtype" : "fp32",
              "rhs" : "replicated",
              "rows" : [ {
                "m" : 2048,
                "k" : 512,
                "n" : 64,
                "ranks" : 4,
                "algorithm" : "ring",
                "splits" : null,
                "chunks" : 8,
                "chunkRows" : 64,
                "lanes" : 1,
                "predictedUs" : 12.5,
                "limitFraction" : 0.5,
                "best" : true
              }, {
                "m" : 2048,
                "k" : 512,
                "n" : 64,
                "ranks" : 4,
                "algorithm" : "direct",
                "reason" : "direct on trn2"
              } ]
            }
            """;

    private final List<String> records =
            List.of(
                    new RecordMaker().ranks(2, 1).waits(1000).json(),
                    new RecordMaker().ranks(4, 2).chunks(1, 9000).json(),
                    new RecordMaker().ranks(3, 1).simulatedOn("trn2").json(),
                    SWEEP);

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void giveAPageOrOneLine(long seed) {
        int shown = 0;
        for (int round = 0; round < ROUNDS; round++) {
            Random random = new Random(1_000_000 * seed + round);
            byte[] mutant = mutant(records.get(random.nextInt(records.size())), random);
            try {
                shown += show(mutant) ? 1 : 0;
            } catch (RuntimeException | Error | IOException e) {
                fail("seed " + seed + ", round " + round, e);
            }
        }
        assertTrue(shown > 0 && shown < ROUNDS, shown + " of " + ROUNDS + " were shown");
    }

    /** Whether there is a page; not if it is refused. */
    private static boolean show(byte[] json) throws IOException {
        RecordReader.Read read;
        try {
            read = RecordReader.read("r.json", new ByteArrayInputStream(json));
        } catch (IllegalArgumentException e) {
            assertTrue(e.getMessage().startsWith("r.json: "), e.getMessage());
            return false;
        }
        if (read.run() == null) {
            PageJson.write(PageData.sweep("s", read.sweep()), "9.9", Writer.nullWriter());
            return true;
        }
        ShownRun run = RunView.of(read.run(), "r.json");
        PageJson.write(PageData.of(run), "9.9", Writer.nullWriter());
        TraceJson.write(run.call(), run.flopsPerRow(), Map.of(), Writer.nullWriter());
        for (TimeShares.RankShares rank : run.analysis().shares()) {
            double sum = rank.parts().stream().mapToDouble(TimeShares.Share::ns).sum();
            if (sum > 0) {
                assertEquals(run.call().endNs(), sum, 1e-6 * sum, "parts add up to the call");
            }
        }
        return true;
    }

    private static byte[] mutant(String record, Random random) {
        int kind = random.nextInt(5);
        byte[] bytes =
                (kind < 4 ? otherValue(record, random) : record).getBytes(StandardCharsets.UTF_8);
        for (int changes = kind < 3 ? 0 : 1 + random.nextInt(2); changes > 0; changes--) {
            bytes = otherBytes(bytes, random);
        }
        return bytes;
    }

    /** One field, any name as likely as any other, gets another value. */
    private static String otherValue(String record, Random random) {
        Map<String, List<Integer>> places = new TreeMap<>();
        Matcher fields = Pattern.compile("\"(\\w+)\" : ").matcher(record);
        while (fields.find()) {
            places.computeIfAbsent(fields.group(1), name -> new ArrayList<>()).add(fields.end());
        }
        List<List<Integer>> all = List.copyOf(places.values());
        List<Integer> one = all.get(random.nextInt(all.size()));
        int start = one.get(random.nextInt(one.size()));
        int end = start;
        while (",\n[{".indexOf(record.charAt(end)) < 0) {
            end++;
        }
        String value = VALUES.get(random.nextInt(VALUES.size()));
        return record.substring(0, start) + value + record.substring(end);
    }

    private static byte[] otherBytes(byte[] bytes, Random random) {
        if (bytes.length < 2) {
            return bytes;
        }
        int from = random.nextInt(bytes.length);
        int to = Math.min(bytes.length, from + 1 + random.nextInt(40));
        byte[] changed = bytes.clone();
        switch (random.nextInt(5)) {
            case 0 -> changed[from] = (byte) random.nextInt();
            case 1 -> changed[from] = (byte) "0123456789-.eE\"{}[],: \\".charAt(random.nextInt(23));
            case 2 -> changed[from] ^= (byte) (1 << random.nextInt(8));
            case 3 -> {
                changed = new byte[bytes.length - (to - from)];
                System.arraycopy(bytes, 0, changed, 0, from);
                System.arraycopy(bytes, to, changed, from, bytes.length - to);
            }
            default -> {
                changed = new byte[bytes.length + (to - from)];
                System.arraycopy(bytes, 0, changed, 0, to);
                System.arraycopy(bytes, from, changed, to, bytes.length - from);
            }
        }
        return changed;
    }
}
