package dev.weft.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What rows say, from times that are made up. */
class GpuRowsTest {

    private static final List<BenchRow.Check> RIGHT =
            List.of(new BenchRow.Check("product", true, "fine"));

    private static Samples us(Double... values) {
        return new Samples(List.of(values));
    }

    /** Row 5 needs 0.97 of cuBLAS and, with such a gather, 0.97 of the limit. */
    private static BenchRow overlap(
            DType out,
            double gated,
            double pipelined,
            List<BenchRow.Check> checks,
            boolean pytorch) {
        Map<String, Samples> times =
                new HashMap<>(
                        Map.of(
                                "cublas", us(400.0),
                                "gated", us(gated),
                                "gather", us(1000.0),
                                "sequential", us(1400.0),
                                "pipelined", us(pipelined),
                                "pipelinedCublas", us(1100.0)));
        if (pytorch) {
            times.put("pytorchSequential", us(1463.0));
            times.put("pytorchPipelined", us(1154.0));
        }
        return GpuOverlapRow.of(5).measured(out, times, Map.of("pipelinedCopies", 7.0), checks);
    }

    @ParameterizedTest
    @CsvSource({
        "5000, 0.97",
        "900.1, 0.97",
        "900, 0.95",
        "500.1, 0.95",
        "500, 0.90",
        "200.1, 0.90",
        "200, 0.75",
        "94, 0.75",
    })
    void theNeededPartGrowsWithTheLimit(double limitUs, double needed) {
        assertEquals(needed, GpuOverlapRow.pipelinedNeeded(limitUs));
    }

    @ParameterizedTest
    @CsvSource({"2048, 0.93", "4095, 0.93", "4096, 0.97", "16384, 0.97"})
    void theNeededSpeedGrowsWithTheRows(long m, double needed) {
        assertEquals(needed, GpuOverlapRow.gatedNeeded(m));
    }

    @Test
    void aRowThatReachesEverythingPasses() {
        BenchRow row = overlap(DType.FP16, 400, 1020, RIGHT, true);
        assertTrue(row.pass(), row.toString());
        assertEquals(1000, row.figures().get("limitUs"), "the gather is longer than the product");
        assertEquals(1000.0 / 1020, row.ratio());
        assertEquals(1, row.figures().get("gatedSpeed"));
        assertEquals(1, row.figures().get("fasterThanPytorch"));
        assertEquals(7, row.figures().get("pipelinedCopies"));
    }

    @Test
    void everyMissIsNamed() {
        BenchRow row = overlap(DType.FP16, 500, 1200, RIGHT, true);
        assertEquals(
                List.of(
                        "gated at 0.800 of cuBLAS's speed, needed 0.97",
                        "pipelined at 0.833 of the limit, needed 0.97",
                        "pipelined is not faster than PyTorch's 1154 us"),
                row.misses());
        assertTrue(row.verified(), "slow is not wrong");
        assertFalse(row.pass());
    }

    @Test
    void whatIsNoNumberReachesNothing() {
        assertEquals(2, overlap(DType.FP32, Double.NaN, Double.NaN, RIGHT, false).misses().size());
    }

    @Test
    void pytorchIsComparedWhereItHasTakenTurns() {
        assertEquals(
                0, overlap(DType.FP16, 400, 5000, RIGHT, true).figures().get("fasterThanPytorch"));
        assertFalse(
                overlap(DType.FP16, 400, 5000, RIGHT, false)
                        .figures()
                        .containsKey("fasterThanPytorch"));
    }

    @Test
    void aFailedCheckOrNoneAtAllIsNotVerified() {
        List<BenchRow.Check> wrong =
                List.of(RIGHT.getFirst(), new BenchRow.Check("bits", false, "2 wrong"));
        assertFalse(overlap(DType.FP16, 400, 1020, wrong, true).verified());
        assertFalse(overlap(DType.FP16, 400, 1020, List.of(), true).verified());
    }

    @Test
    void aRowThatCannotRunIsWrongAndSaysWhy() throws Exception {
        BenchRow row =
                GpuRow.attempt(
                        "overlap",
                        "row 1",
                        () -> {
                            throw new IllegalStateException("a stall\nand more");
                        });
        assertFalse(row.verified());
        assertEquals("a stall", row.checks().getFirst().detail());
    }

    @Test
    void allRowsAreThereWithTheirNumbers() {
        assertEquals(18, GpuOverlapRow.ROWS.size());
        for (int number = 1; number <= 18; number++) {
            assertEquals(number, GpuOverlapRow.of(number).number());
        }
        assertEquals(
                "row 10: W 4, M 8192 uneven K 4096 N 4096, bf16 to fp32",
                GpuOverlapRow.of(10).name(DType.FP32));
    }

    @ParameterizedTest
    @CsvSource({"960, true", "961, false"})
    void ranksThatShareAreComparedWithAllTheirProducts(double autoUs, boolean pass) {
        Map<String, Samples> times =
                Map.of(
                        "cublas", us(400.0),
                        "auto", us(autoUs),
                        "meshPull", us(1600.0),
                        "ring", us(2400.0));
        BenchRow row = GpuSharedCase.row(2, "direct", times, RIGHT);
        assertEquals(pass, row.pass(), row.toString());
        assertEquals(800, row.figures().get("productsUs"));
        assertEquals(2, row.figures().get("meshPullOverProducts"));
        assertEquals(3, row.figures().get("ringOverProducts"));
    }

    @Test
    void theWallTimeIsFromTheFirstStartToTheLastEnd() {
        long big = Long.MAX_VALUE - 5;
        assertEquals(
                50, GpuRanks.wallNs(new long[] {big + 10, big}, new long[] {big + 20, big + 50}));
    }

    @Test
    void queuedCallsAreComparedWithAwaitedOnes() {
        BenchRow row =
                GpuQueueCase.row(
                        4096,
                        Map.of("awaited", us(30.0, 20.0, 40.0), "queued", us(20.0, 10.0, 30.0)),
                        List.of(new BenchRow.Check("product", true, "")));
        assertEquals(1.5, row.ratio());
        assertTrue(row.pass());
    }

    @ParameterizedTest
    @CsvSource({"1000, true", "1020, true", "1021, false"})
    void helionsCallIsComparedWithTheOperator(double helionUs, boolean pass) {
        Map<String, Samples> times =
                Map.of(
                        "helion", us(helionUs),
                        "example", us(2000.0),
                        "operator", us(1000.0));
        BenchRow row = GpuHelionCase.row(4, times, RIGHT);
        assertEquals(pass, row.pass(), row.toString());
        assertEquals(1000 / helionUs, row.ratio());
        assertEquals(0.5, row.figures().get("exampleSpeed"));
    }

    @Test
    void callsAreCountedAndTheFirstWrongOnesTold() {
        BenchRow right = GpuCallsCase.GATHER.row(us(3.0, 1.0, 2.0), List.of());
        assertTrue(right.pass(), right.toString());
        assertEquals(2, right.figures().get("callUs"));
        List<BenchRow.Check> wrong =
                List.of(new BenchRow.Check("call 2: product", false, "8 wrong"));
        BenchRow row = GpuCallsCase.GATHER.row(us(3.0, 1.0, 2.0, 4.0), wrong);
        assertFalse(row.verified());
        assertEquals(3, row.figures().get("passed"));
        assertEquals(0.75, row.ratio());
        assertEquals("call 2: product", row.checks().getLast().what());
    }
}
