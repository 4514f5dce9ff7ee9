package dev.weft.bench;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cuda.Gpu;
import dev.weft.ffi.CublasLt;
import dev.weft.ffi.CudaDevices;
import dev.weft.report.Samples;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * All that one GPU bench found; field names and units are those of docs/bench-record.md.
 *
 * @param iterations rounds that counted
 */
record GpuRecord(
        String weft,
        String java,
        Machine machine,
        boolean quick,
        int iterations,
        String startedAt,
        List<GpuRow> rows) {

    /**
     * Where it ran.
     *
     * @param processor of the host, as the system calls it, or {@code unknown}
     * @param capability 80, 90
     * @param driver the newest CUDA that the driver serves
     */
    record Machine(
            String os,
            String arch,
            String processor,
            int cores,
            String gpu,
            int capability,
            int multiprocessors,
            long memoryBytes,
            String driver,
            String cublasLt) {

        static Machine of(Gpu gpu) throws IOException {
            int driver = CudaDevices.driverVersion();
            long cublas = CublasLt.version();
            return new Machine(
                    System.getProperty("os.name"),
                    System.getProperty("os.arch"),
                    Processor.name(),
                    Runtime.getRuntime().availableProcessors(),
                    gpu.name(),
                    gpu.capability(),
                    gpu.multiprocessors(),
                    CudaDevices.totalMemory(gpu.ordinal()),
                    driver / 1000 + "." + driver % 1000 / 10,
                    cublas / 10_000 + "." + cublas / 100 % 100 + "." + cublas % 100);
        }
    }

    /** Writes the record's fields into the object that is open. */
    void write(JsonGenerator json) throws IOException {
        json.writeStringField("schema", BenchRecord.SCHEMA);
        json.writeStringField("weft", weft);
        json.writeStringField("java", java);
        json.writeObjectFieldStart("machine");
        json.writeStringField("os", machine.os);
        json.writeStringField("arch", machine.arch);
        json.writeStringField("processor", machine.processor);
        json.writeNumberField("cores", machine.cores);
        json.writeStringField("engine", "gated");
        json.writeStringField("gpu", machine.gpu);
        json.writeNumberField("capability", machine.capability);
        json.writeNumberField("multiprocessors", machine.multiprocessors);
        json.writeNumberField("memoryBytes", machine.memoryBytes);
        json.writeStringField("driver", machine.driver);
        json.writeStringField("cublasLt", machine.cublasLt);
        json.writeStringField("clocks", "unknown");
        json.writeEndObject();
        json.writeBooleanField("quick", quick);
        json.writeNumberField("iterations", iterations);
        json.writeStringField("startedAt", startedAt);
        json.writeArrayFieldStart("rows");
        for (GpuRow row : rows) {
            row(json, row);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("skipped");
        json.writeEndArray();
    }

    private static void row(JsonGenerator json, GpuRow row) throws IOException {
        json.writeStartObject();
        json.writeStringField("item", row.item());
        json.writeStringField("case", row.name());
        json.writeStringField("peer", row.peer());
        number(json, "ratio", row.ratio());
        for (Map.Entry<String, Double> figure : row.figures().entrySet()) {
            number(json, figure.getKey(), figure.getValue());
        }
        for (Map.Entry<String, Samples> time : row.times().entrySet()) {
            number(json, time.getKey() + "Us", time.getValue().median());
            number(json, time.getKey() + "SpreadUs", time.getValue().spread());
        }
        json.writeNumberField("pass", row.pass() ? 1 : 0);
        json.writeBooleanField("verified", row.verified());
        json.writeArrayFieldStart("checks");
        for (GpuCheck check : row.checks()) {
            json.writeStartObject();
            json.writeStringField("what", check.what());
            json.writeBooleanField("passed", check.passed());
            json.writeStringField("detail", check.detail());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeArrayFieldStart("misses");
        for (String miss : row.misses()) {
            json.writeString(miss);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    /** To four places, which is beyond what is measured; what is no number as null. */
    private static void number(JsonGenerator json, String name, double value) throws IOException {
        double rounded = Math.rint(value * 1e4) / 1e4;
        if (!Double.isFinite(value)) {
            json.writeNullField(name);
        } else if (rounded == Math.rint(rounded)) {
            json.writeNumberField(name, Math.round(rounded));
        } else {
            json.writeNumberField(name, rounded);
        }
    }
}
