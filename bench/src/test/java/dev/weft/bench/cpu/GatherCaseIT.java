package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.Mpi;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Starts ranks by the MPIs that are here. No time is looked at; wrong bytes would end it. */
class GatherCaseIT {

    @TempDir Path folder;

    @Test
    void everySizeAndLayoutIsARowBesideEachMpi()
            throws IOException, InterruptedException, SkippedException {
        int here = 0;
        for (Mpi.Implementation mpi : Mpi.Implementation.values()) {
            here += Mpi.startAnyway(mpi, folder).isPresent() ? 1 : 0;
        }
        Collected found = new Collected();
        new GatherCase().run(new BenchCase.Settings(true, 2, folder), found);
        found.assertSound("gather");
        assertEquals(here * GatherTimes.SIZES.size() * 2, found.rows.size());
        assertEquals(Mpi.Implementation.values().length - here, found.skipped.size());
        found.rows.forEach(row -> assertTrue(row.ratio() > 0, row.toString()));
    }
}
