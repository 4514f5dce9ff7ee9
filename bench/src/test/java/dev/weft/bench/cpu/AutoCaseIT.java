package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.peers.Lab;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Starts processes as ranks. No time is looked at. */
class AutoCaseIT {

    @TempDir Path folder;

    @Test
    @Tag("long")
    void problemsWithThreadsAndProcessesGiveRowsAndASummary()
            throws IOException, InterruptedException {
        Assumptions.assumeTrue(Lab.current().isEmpty(), "in a lab: more rows");
        Collected found = new Collected();
        new AutoCase().run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound("auto");
        assertEquals(4 + 2 + 1, found.rows.size());
        BenchRow summary = found.rows.getLast();
        assertEquals(6, summary.figures().get("problems"));
        assertTrue(summary.name().contains("seed " + RandomProblem.SEED), summary.name());
        assertEquals(1, found.skipped.size(), "the lab");
    }
}
