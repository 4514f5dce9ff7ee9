package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.bench.measure.BenchCase;
import dev.weft.tune.Effort;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Uses the machine for some seconds. No time is looked at. */
class PredictCaseIT {

    @TempDir Path folder;

    @Test
    void everyRunIsPredictedOverlappedAndSequential() {
        assertPredicted(PredictCase.gathers(Effort::quick));
        assertPredicted(PredictCase.sums(Effort::quick));
    }

    private void assertPredicted(PredictCase runs) {
        Collected found = new Collected();
        runs.run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound(runs.item());
        long predictions =
                found.rows.stream().filter(row -> row.figures().containsKey("predictedNs")).count();
        assertEquals(2 * 2, predictions);
        long summaries =
                found.rows.stream().filter(row -> row.figures().containsKey("worstError")).count();
        assertEquals(2, summaries + found.skipped.size(), found.skipped.toString());
    }
}
