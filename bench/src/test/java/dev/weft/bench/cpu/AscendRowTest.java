package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class AscendRowTest {

    /** To the last figure, as the example prints them beside its times. */
    @Test
    void theTimesGiveThePublishedRates() {
        List<Double> published =
                List.of(28.96, 62.57, 111.62, 109.13, 139.42, 166.75, 191.03, 212.71);
        for (int i = 0; i < published.size(); i++) {
            AscendRow row = AscendRow.ROWS.get(i);
            double rate = row.tflops(row.publishedMs());
            // Times have three places, rates come from more: half a unit of the last one.
            double half = rate * 0.0005 / row.publishedMs() + 0.005;
            assertEquals(published.get(i), rate, half, row.describe());
        }
    }
}
