package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchCase;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RanksCaseTest {

    @TempDir Path folder;

    @Test
    void measuresBothCurvesAndPlotsThem() throws Exception {
        Collected found = new Collected();
        Path plots = folder.resolve("plots");
        new RanksCase(plots).run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound("ranks");
        assertEquals(3 * 4 + 3, found.rows.size());
        assertEquals(
                3,
                found.rows.stream()
                        .filter(row -> row.peer().equals("1 rank"))
                        .filter(row -> row.figures().get("ranks") == 1 && row.ratio() == 1)
                        .count());
        for (String name : new String[] {"ranks.svg", "chunks.svg"}) {
            assertTrue(Files.readString(plots.resolve(name)).endsWith("</svg>\n"), name);
        }
    }

    @Test
    void plotsOnlyWhereAsked() throws Exception {
        new RanksCase(null).run(new BenchCase.Settings(true, 2, folder), new Collected());
        try (var files = Files.list(folder)) {
            assertEquals(0, files.count());
        }
    }
}
