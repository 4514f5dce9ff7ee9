package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import java.util.ArrayList;
import java.util.List;

/** Keeps what a case finds. */
final class Collected implements BenchCase.Sink {

    final List<BenchRow> rows = new ArrayList<>();
    final List<String> skipped = new ArrayList<>();

    @Override
    public void row(BenchRow row) {
        rows.add(row);
    }

    @Override
    public void skipped(String item, String reason) {
        skipped.add(item + ": " + reason);
    }

    @Override
    public void machine(String name, double value) {}

    /** Says nothing about the numbers but that they are some. */
    void assertSound(String item) {
        for (BenchRow row : rows) {
            assertEquals(item, row.item());
            assertTrue(row.ratio() >= 0 && Double.isFinite(row.ratio()), row.toString());
            assertTrue(row.figures().values().stream().allMatch(Double::isFinite), row.toString());
        }
        assertEquals(rows.size(), rows.stream().map(BenchRow::name).distinct().count());
    }
}
