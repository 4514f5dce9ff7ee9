package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class AscendRowTest {

    /** Times and rates were typed in from one table: each checks the other. */
    @Test
    void theTimesGiveThePublishedRates() {
        for (AscendRow row : AscendRow.ROWS) {
            double rate = row.flops() / row.publishedMs() / 1e9;
            // Times have three places, rates come from more: half a unit of the last one.
            double half = rate * 0.0005 / row.publishedMs() + 0.005;
            assertEquals(row.publishedTflops(), rate, half, row.describe());
        }
    }
}
