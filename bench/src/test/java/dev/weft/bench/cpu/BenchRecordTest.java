package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.BenchRow;
import dev.weft.cli.console.Version;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

class BenchRecordTest {

    private final List<String> printed = new ArrayList<>();
    private final BenchTable table = new BenchTable(false, printed::add);

    private String json() throws IOException {
        Map<String, Object> machine = new LinkedHashMap<>();
        machine.put("processor", "a \"CPU\"");
        machine.put("cores", 4);
        machine.put("figures", table.figures());
        BenchRecord bench =
                new BenchRecord(
                        machine,
                        true,
                        OptionalInt.empty(),
                        "2026-01-02T03:04:05Z",
                        table.rows(),
                        table.skipped());
        StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.writeStartObject();
            bench.write(json);
            json.writeEndObject();
        }
        return text.toString();
    }

    @Test
    void everyFieldHasItsPlace() throws IOException {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("weftMedianNs", 2.5e6);
        figures.put("peakFraction", 0.75);
        figures.put("pass", 1.0);
        table.row(new BenchRow("product", "fp32 8 x 8 x 8", "OpenBLAS", 1.5, figures));
        table.skipped("fused", "no mpicc\nand more");
        table.machine("fmaPeakGflopsThreads1", 100.25);
        assertEquals(
                "{'schema':'weft.bench/1','weft':'%s','java':'%s',"
                                .formatted(Version.number(), Runtime.version())
                        + "'machine':{'processor':'a \\'CPU\\'','cores':4,"
                        + "'figures':{'fmaPeakGflopsThreads1':100.25}},"
                        + "'quick':true,'startedAt':'2026-01-02T03:04:05Z',"
                        + "'rows':[{'item':'product','case':'fp32 8 x 8 x 8','peer':'OpenBLAS',"
                        + "'ratio':1.5,'weftMedianNs':2500000,'peakFraction':0.75,'pass':1}],"
                        + "'skipped':[{'item':'fused','reason':'no mpicc'}]}",
                json().replace('"', '\''));
    }

    @Test
    void whatIsNoNumberIsNull() throws IOException {
        table.row(new BenchRow("overlap", "x", "y", Double.NaN, Map.of("a", 1.0 / 0.0)));
        assertTrue(json().contains("\"ratio\":null,\"a\":null"), json());
    }

    @Test
    void smallProblemsGetNoVerdict() {
        BenchTable quick = new BenchTable(true, printed::add);
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("weftMedianNs", 2.5e6);
        figures.put("productRatio", 0.875);
        figures.put("overMpi", 0.625);
        figures.put("pass", 0.0);
        quick.row(new BenchRow("fused", "one", "MPI", 0.5, figures));
        quick.summary();
        String text = String.join("\n", printed);
        assertTrue(text.contains("weft 2.500 ms"), text);
        assertTrue(text.contains("no ratios, as there are too few rounds"), text);
        assertTrue(
                text.contains("fused, compared with MPI: 1 row\n") || text.endsWith("1 row"), text);
        for (String ratio : List.of("0.5", "0.875", "0.625", "pass", "ratio 0")) {
            assertTrue(!text.contains(ratio), ratio + " in " + text);
        }
    }

    @Test
    void rowsArePrintedAsTheyComeAndSummedUpAtTheEnd() {
        table.row(new BenchRow("fused", "one", "MPI", 0.5, Map.of("pass", 0.0)));
        table.row(new BenchRow("fused", "two", "MPI", 1.5, Map.of("pass", 1.0)));
        table.row(new BenchRow("startup", "x", "y", 2, Map.of("coldNs", 1.5e6)));
        assertEquals(3, printed.size());
        assertTrue(printed.get(1).contains("1.500  pass yes"), printed.get(1));
        assertTrue(printed.get(2).contains("  cold 1.500 ms"), printed.get(2));
        table.summary();
        assertTrue(
                printed.contains(
                        "fused, compared with MPI: 2 rows, ratio 0.500 to 1.500, median 1.000, 1 of"
                                + " 2 pass"),
                printed.toString());
    }
}
