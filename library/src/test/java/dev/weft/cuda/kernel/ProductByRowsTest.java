package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.cuda.kernel.ProductByRows.Choice;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which kernel multiplies how many rows. */
class ProductByRowsTest {

    private final List<String> done = new ArrayList<>();

    private final class Noted implements DeviceProduct {

        private final int number;

        Noted(int number) {
            this.number = number;
        }

        @Override
        public int blocks() {
            return number;
        }

        @Override
        public void setRows(RowPlaces.Call call, GpuStream stream) {
            done.add(number + " has " + call.at(3) + " of 3 and " + call.at(100) + " of 100");
        }

        @Override
        public void launch(int place, int epoch, GpuStream stream) {
            done.add(number + " runs " + epoch);
        }

        @Override
        public void close() {
            done.add(number + " ends");
        }
    }

    @Test
    void aCallTakesTheLeastThatHasRoom() {
        try (ProductByRows product =
                new ProductByRows(
                        List.of(
                                new Choice(100, new Noted(100)),
                                new Choice(32, new Noted(32)),
                                new Choice(8, new Noted(8))),
                        100)) {
            product.launch(0, 1, null);
            assertEquals(100, product.blocks());
            // Each other row: the first three are one.
            product.setRows(row -> row / 2, null);
            product.launch(0, 2, null);
            product.setRows(row -> row / 10, null);
            product.launch(0, 3, null);
            product.setRows(row -> Math.min(row, 8), null);
            product.launch(0, 4, null);
            product.setRows(row -> row, null);
            product.launch(0, 5, null);
        }
        assertEquals(
                List.of(
                        "100 runs 1",
                        "100 has 1 of 3 and 50 of 100",
                        "100 runs 2",
                        // Few rows are the first ones, whichever shards they are of.
                        "32 has 3 of 3 and 10 of 100",
                        "32 runs 3",
                        "8 has 3 of 3 and 8 of 100",
                        "8 runs 4",
                        "100 has 3 of 3 and 100 of 100",
                        "100 runs 5",
                        "100 ends",
                        "32 ends",
                        "8 ends"),
                done);
    }

    @ParameterizedTest
    @CsvSource({
        "1, 4224, 8, 32",
        "8, 4225, 8, 64",
        "9, 4224, 32, 32",
        "32, 100000, 32, 64",
        "0, 1, 8, 32",
        "33, 3000, 32, 64",
        "128, 3072, 32, 64"
    })
    void narrowTilesWhileThereIsAMultiprocessorForEach(
            long rows, long columns, int tileRows, int width) {
        Tiling tiling = KernelFamily.ofFewRows(rows, 4096, columns, 132);
        assertEquals(tileRows, tiling.rows());
        assertEquals(width, tiling.width());
    }

    @Test
    void moreRowsAreNotFew() {
        assertNull(KernelFamily.ofFewRows(33, 4096, 3073, 132), "B would be read several times");
        assertNull(KernelFamily.ofFewRows(129, 4096, 32, 132));
        assertEquals(32, GatedKernel.fewerRows(33));
        assertEquals(8, GatedKernel.fewerRows(32));
        assertEquals(0, GatedKernel.fewerRows(8));
    }
}
