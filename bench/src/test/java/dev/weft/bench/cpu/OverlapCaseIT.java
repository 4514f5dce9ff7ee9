package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.SkippedException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Starts a JVM per run. */
class OverlapCaseIT {

    @TempDir Path folder;

    @Test
    void directAndCopyingAlgorithmsGiveRowsWithBothLaunchers() throws Exception {
        Collected found = new Collected();
        new OverlapCase(List.of("ring")).run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound("overlap");
        assertEquals(2 * 3, found.rows.size());
        for (String launcher : new String[] {"threads", "processes"}) {
            assertEquals(
                    3,
                    found.rows.stream()
                            .filter(row -> row.name().contains(launcher))
                            .filter(row -> row.figures().containsKey("pass"))
                            .count(),
                    "judged: direct, the free gather, the best copying algorithm");
        }
    }

    @Test
    void oneCoreIsSkippedWithItsReason() {
        BenchCase.Settings settings = new BenchCase.Settings(true, 1, folder);
        assertThrows(
                SkippedException.class, () -> new OverlapCase().run(settings, new Collected()));
    }
}
