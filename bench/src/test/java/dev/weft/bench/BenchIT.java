package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.weft.bench.peers.JavaProduct;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Small benches, whole: they measure something and record it. No time is looked at. */
class BenchIT {

    @TempDir Path folder;

    @Test
    void theProductIsMeasuredBesideWeftItselfAtLeast() throws IOException {
        List<Double> ratios = ratios("product");
        // fp16 and bf16 beside fp32, with one thread and with all.
        assertTrue(ratios.size() >= 2, ratios.toString());
    }

    @Test
    void gatherAndProductAreMeasuredWhereThereIsMpi() throws IOException {
        List<Double> ratios = ratios("fused");
        Assumptions.assumeFalse(ratios.isEmpty(), "skipped here: no MPI, no OpenBLAS or one core");
    }

    @Test
    void productAndReduceAreMeasuredWhereThereIsMpi() throws IOException {
        List<Double> ratios = ratios("reduce");
        Assumptions.assumeFalse(ratios.isEmpty(), "skipped here: no MPI, no OpenBLAS or one core");
        // Two operators in two orders at two shapes, one with a norm, and two small ones.
        assertEquals(11, ratios.size(), ratios.toString());
    }

    @Test
    void layersOfExpertsAreMeasuredWhereThereIsMpi() throws IOException {
        List<Double> ratios = ratios("experts");
        Assumptions.assumeFalse(ratios.isEmpty(), "skipped here: no MPI, no OpenBLAS or one core");
        assertEquals(2, ratios.size(), ratios.toString());
    }

    @Test
    void callsOfFewerRowsAreMeasuredAndHaveTheirBits() throws IOException {
        // A gather and an all-reduce of 1, 7, 16 and 100 rows.
        assertEquals(8, ratios("rows").size());
    }

    @Test
    void weightsInBlocksAreMeasuredBesideThePeersThatAreHere() throws IOException {
        int expected = 3;
        for (var library : List.of(JavaProduct.Library.LLAMA, JavaProduct.Library.ONNX)) {
            for (String type : List.of("q8_0", "q4_0", "q4_k")) {
                boolean here = library.unavailable().isEmpty();
                expected += here && library.multiplies(type) ? 1 : 0;
            }
        }
        assertEquals(expected, ratios("blocks").size());
    }

    /** One row is measured; another would take longer than the limit. */
    @Test
    void thePublishedTableStandsBesideWhatIsPredictedAndMeasured() {
        Invocation run =
                Invocation.of(
                        "bench ascend --quick --only predicted,cpu --rows 1,8 --limit 1"
                                .split(" "));
        assertEquals(0, run.code(), run.err() + run.out());
        String number = "\\d+\\.\\d{3}";
        String predicted = number + " +\\S+ +";
        String measured = "1 +2 +2048 +2048 +1024 +0\\.297 +28\\.96 +" + predicted + number + " +-";
        String skipped = "8 +8 +16384 +4096 +4096 +2\\.585 +212\\.71 +" + predicted + "- +-";
        for (String row : List.of(measured, skipped)) {
            assertTrue(run.out().lines().anyMatch(line -> line.strip().matches(row)), run.out());
        }
        assertTrue(
                run.out().contains("skipped cpu: 8 ranks, 16384 x 4096 x 4096: about"), run.out());
    }

    private List<Double> ratios(String item) throws IOException {
        Path file = folder.resolve(item + ".json");
        Invocation run =
                Invocation.of("bench", "cpu", "--quick", "--only", item, "--json", file.toString());
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(run.out().lines().anyMatch(line -> line.startsWith("item ")), run.out());
        List<Double> ratios = new ArrayList<>();
        boolean skipped = false;
        try (JsonParser json = new JsonFactory().createParser(file.toFile())) {
            while (json.nextToken() != null) {
                if (json.currentToken() == JsonToken.FIELD_NAME) {
                    String name = json.currentName();
                    JsonToken value = json.nextToken();
                    skipped |= name.equals("reason");
                    if (name.equals("ratio")) {
                        assertTrue(value.isNumeric(), run.out());
                        ratios.add(json.getDoubleValue());
                    }
                    if (name.equals("item")) {
                        assertEquals(item, json.getText());
                    }
                }
            }
        }
        assertTrue(ratios.stream().allMatch(r -> Double.isFinite(r) && r > 0), run.out());
        assertFalse(ratios.isEmpty() && !skipped, run.out());
        // In the record, but not shown: there are too few rounds to compare.
        assertEquals(
                ratios.size(),
                run.out().lines().filter(line -> line.matches(item + " .* -  weft .*")).count(),
                run.out());
        assertTrue(run.out().contains("--quick shows that it works, not how fast"), run.out());
        return ratios;
    }
}
