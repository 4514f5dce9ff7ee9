package dev.weft.cuda.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Where rows lie in the ranks' buffers. */
class DeviceLayoutTest {

    private static final long ADDRESS = 4096;

    @Test
    void everyElementOfEveryShardHasAPlaceOfItsOwnInGatheredA() {
        for (DType type : DType.values()) {
            for (long cols : new long[] {1, 7, 33, 64}) {
                Shards uneven = Shards.of(3, 0, 5, 1);
                assertApart(new DeviceLayout(uneven, type, cols, DeviceLayout.Place.ROWS), 9, cols);
                Shards even = Shards.even(12, 3);
                assertApart(
                        new DeviceLayout(even, type, cols, DeviceLayout.Place.COLUMNS),
                        4,
                        3 * cols);
            }
        }
    }

    private static void assertApart(DeviceLayout layout, long rows, long cols) {
        Set<Long> places = new HashSet<>();
        Shards shards = layout.shards();
        for (int source = 0; source < shards.ranks(); source++) {
            for (long row = 0; row < shards.rows(source); row++) {
                for (long col = 0; col < layout.cols(); col++) {
                    long at = layout.at(1, source, row, col);
                    assertTrue(at >= 0 && at + layout.dtype().bytes() <= layout.bytes(1));
                    assertEquals(0, at % layout.dtype().bytes());
                    assertTrue(places.add(at), "source " + source + ", row " + row);
                    assertEquals(ADDRESS + at, layout.shard(1, source, ADDRESS).at(row, col));
                    long inAll =
                            layout.place() == DeviceLayout.Place.COLUMNS
                                    ? layout.gathered(ADDRESS).at(row, source * layout.cols() + col)
                                    : layout.gathered(ADDRESS)
                                            .at(shards.firstRow(source) + row, col);
                    assertEquals(ADDRESS + at, inAll);
                }
            }
        }
        assertEquals(rows, layout.gathered(ADDRESS).rows());
        assertEquals(cols, layout.gathered(ADDRESS).cols());
    }

    /** Two places of the own shard and two of the largest, however many ranks there are. */
    @Test
    void pingPongBuffersDoNotGrowWithTheRanks() {
        for (int ranks : List.of(2, 8, 64)) {
            Shards shards = Shards.even(128L * ranks, ranks);
            DeviceLayout layout =
                    new DeviceLayout(shards, DType.BF16, 512, DeviceLayout.Place.PING_PONG);
            assertEquals(2 * 128 * 1024, layout.bytes(ranks - 1));
        }
    }

    @Test
    void whatArrivesLiesBehindTheOwnShardInTheBufferOfItsSlot() {
        DeviceLayout layout =
                new DeviceLayout(Shards.of(3, 0, 5), DType.FP16, 8, DeviceLayout.Place.PING_PONG);
        assertEquals(0, layout.at(2, 2, 0, 0));
        assertEquals(5 * 16, layout.at(2, 0, 0, 0));
        assertEquals(16 + 2, layout.at(1, 0, 1, 1));
        assertEquals(10 * 16, layout.bytes(2));
        for (int parity = 0; parity < 2; parity++) {
            assertEquals(parity, layout.buffer(2, 2, 1 - parity, parity));
            assertEquals(1, layout.buffer(2, 0, 1, parity));
            assertEquals(0, layout.buffer(2, 1, 0, parity));
        }
    }
}
