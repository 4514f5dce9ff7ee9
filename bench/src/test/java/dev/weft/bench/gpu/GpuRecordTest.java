package dev.weft.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.BenchRow;
import dev.weft.cli.console.Version;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;

/** The record and the printed table, from rows that are made up. */
class GpuRecordTest {

    private static final List<BenchRow.Check> RIGHT =
            List.of(new BenchRow.Check("product", true, "fine"));

    private final List<String> printed = new ArrayList<>();
    private final GpuTable table = new GpuTable(false, printed::add);

    private static Samples us(double... values) {
        return new Samples(DoubleStream.of(values).boxed().toList());
    }

    private static BenchRow overlap(int number, double pipelined) {
        Map<String, Samples> times = new LinkedHashMap<>();
        times.put("cublas", us(300, 310, 320));
        times.put("gated", us(312, 312, 312));
        times.put("gather", us(620, 620, 620.5));
        times.put("sequential", us(950, 950, 950));
        times.put("pipelined", us(pipelined));
        times.put("pipelinedCublas", us(680));
        times.put("pytorchSequential", us(979));
        times.put("pytorchPipelined", us(704));
        return GpuOverlapRow.of(number).measured(DType.FP16, times, Map.of("copies", 8.0), RIGHT);
    }

    private String json() throws IOException {
        Map<String, Object> machine = new LinkedHashMap<>();
        machine.put("gpu", "NVIDIA H200");
        machine.put("memoryBytes", 1L << 37);
        BenchRecord record =
                new BenchRecord(
                        machine,
                        false,
                        OptionalInt.of(15),
                        "2026-01-02T03:04:05Z",
                        table.rows().stream().map(BenchRow::rounded).toList(),
                        List.of());
        StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.writeStartObject();
            record.write(json);
            json.writeEndObject();
        }
        return text.toString().replace('"', '\'');
    }

    @Test
    void everyFieldHasItsPlace() throws IOException {
        table.accept(overlap(3, 640));
        assertEquals(
                "{'schema':'weft.bench/1','weft':'%s','java':'%s',"
                                .formatted(Version.number(), Runtime.version())
                        + "'machine':{'gpu':'NVIDIA H200','memoryBytes':137438953472},"
                        + "'quick':false,'iterations':15,'startedAt':'2026-01-02T03:04:05Z',"
                        + "'rows':[{'item':'overlap',"
                        + "'case':'row 3: W 2, M 8192 K 4096 N 4096, fp16 to fp16',"
                        + "'peer':'limit','ratio':0.9688,'row':3,'ranks':2,'m':8192,'k':4096,"
                        + "'n':4096,'outBytes':2,'gatedSpeed':0.9936,'gatedNeeded':0.97,"
                        + "'limitUs':620,'ofLimit':0.9688,'needed':0.95,'copies':8,"
                        + "'fasterThanPytorch':1,"
                        + "'cublasUs':310,'cublasSpreadUs':10,'gatedUs':312,'gatedSpreadUs':0,"
                        + "'gatherUs':620,'gatherSpreadUs':0.25,"
                        + "'sequentialUs':950,'sequentialSpreadUs':0,"
                        + "'pipelinedUs':640,'pipelinedSpreadUs':0,"
                        + "'pipelinedCublasUs':680,'pipelinedCublasSpreadUs':0,"
                        + "'pytorchSequentialUs':979,'pytorchSequentialSpreadUs':0,"
                        + "'pytorchPipelinedUs':704,'pytorchPipelinedSpreadUs':0,"
                        + "'pass':1,'verified':true,"
                        + "'checks':[{'what':'product','passed':true,'detail':'fine'}],"
                        + "'misses':[]}],'skipped':[]}",
                json());
    }

    @Test
    void aRowThatCouldNotRunIsInTheRecord() throws Exception {
        table.accept(failed());
        assertTrue(
                json().contains(
                                "'case':'row"
                                        + " 2','peer':'none','ratio':null,'pass':0,'verified':false,'checks':[{'what':'run','passed':false,'detail':'no"
                                        + " memory'}]"),
                json());
    }

    private static BenchRow failed() throws Exception {
        return GpuRow.attempt(
                "overlap",
                "row 2",
                () -> {
                    throw new IllegalStateException("no memory");
                });
    }

    @Test
    void rowsArePrintedBelowTheirHeadWithWhatIsWrong() throws Exception {
        table.accept(overlap(3, 640));
        table.accept(overlap(3, 750));
        table.accept(failed());
        table.accept(GpuCallsCase.GATHER.row(us(20, 30, 40), List.of()));
        table.summary();
        String text = String.join("\n", printed);
        assertEquals(1, count("of limit"), text);
        assertTrue(printed.get(3).endsWith("yes      ok"), text);
        assertTrue(printed.get(3).contains("310.0/10.0"), text);
        assertEquals(printed.get(2).length(), printed.get(3).length(), text);
        assertTrue(printed.get(4).endsWith("NO  MISSES"), text);
        assertEquals(1, count("     misses: pipelined at 0.827 of the limit, needed 0.95"), text);
        assertEquals(1, count("     FAILED: run: no memory"), text);
        assertEquals(1, count("overlap: 2 of 3 rows verified, 1 reach all that they should"), text);
        assertEquals(1, count("calls: 1 of 1 rows verified, 1 reach all that they should"), text);
    }

    /** Of few rounds only times are shown, and whether results are right. */
    @Test
    void fewRoundsAreNotCompared() throws Exception {
        GpuTable quick = new GpuTable(true, printed::add);
        quick.accept(overlap(3, 750));
        quick.accept(failed());
        quick.summary();
        String text = String.join("\n", printed);
        assertTrue(printed.get(3).contains("750.0/0.0"), text);
        assertTrue(printed.get(3).endsWith("-      ok"), text);
        assertEquals(0, count("0.827"), text);
        assertEquals(0, count("misses"), text);
        assertEquals(0, count("reach all"), text);
        assertEquals(1, count("     FAILED: run: no memory"), text);
        assertEquals(1, count("overlap: 1 of 2 rows verified"), text);
        assertEquals(1, count("no ratios, as there are too few rounds"), text);
    }

    private long count(String part) {
        return printed.stream().filter(line -> line.contains(part)).collect(Collectors.counting());
    }
}
