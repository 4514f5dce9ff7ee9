package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Instructions of an assembler under test, as text and as calls, against a table of bytes that the
 * GNU assembler gave for the texts. A line of the table: bytes in hexadecimal digits, a tab, text.
 * Lines that begin with # say how it was made.
 */
final class EncodingTable<A extends Assembler> {

    private final Map<String, Consumer<A>> calls = new LinkedHashMap<>();

    void add(String text, Consumer<A> call) {
        assertEquals(null, calls.put(text, call), () -> "given twice: " + text);
    }

    /** Every instruction gives the table's bytes, and the table has no others. */
    void check(String resource, Supplier<A> assembler) throws IOException {
        Map<String, String> expected = read(resource);
        List<String> wrong = new ArrayList<>();
        expected.keySet().stream()
                .filter(text -> !calls.containsKey(text))
                .forEach(text -> wrong.add(text + ": no such call"));
        calls.forEach(
                (text, call) -> {
                    A one = assembler.get();
                    call.accept(one);
                    String found = HexFormat.of().formatHex(one.code());
                    if (!found.equals(expected.get(text))) {
                        wrong.add(text + ": " + found + ", not " + expected.get(text));
                    }
                });
        assertEquals(List.of(), wrong);
    }

    private static Map<String, String> read(String resource) throws IOException {
        Map<String, String> table = new LinkedHashMap<>();
        try (InputStream stream = EncodingTable.class.getResourceAsStream(resource)) {
            new String(stream.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .map(line -> line.split("\t", 2))
                    .forEach(parts -> table.put(parts[1], parts[0]));
        }
        return table;
    }
}
