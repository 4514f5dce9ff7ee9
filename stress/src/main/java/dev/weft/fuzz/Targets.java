package dev.weft.fuzz;

import dev.weft.bench.peers.Lab;
import dev.weft.cli.run.FuzzedCommand;
import dev.weft.fabric.FuzzedRendezvous;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.code.FuzzedBlocks;
import dev.weft.gemm.code.FuzzedTiles;
import dev.weft.report.FuzzedRecord;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tune.FuzzedModel;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Every reader of bytes that come from outside the process, with inputs that it accepts, and calls
 * of machine code. Readers of files get a file of their own in {@code folder}. Used by one thread.
 */
final class Targets implements AutoCloseable {

    private static final byte[] OUTPUT_STAMP = bytes("fp32 4 normal\n");
    private static final byte[] SUMMED_STAMP = bytes("fp32 4 matmul-allreduce-by-rank\n");

    /** A command line of thousands of words costs the parser a table for each pair of them. */
    private static final int MOST_WORDS = 30;

    /** One tile of nothing, and two tiles of 50 k with one panel and with three. */
    private static final List<byte[]> TILE_CALLS =
            List.of(
                    new byte[16],
                    new byte[] {0, 2, 1, 5, 7, 50, 1, 1, 3, 9, 2, 0, 1, 2, 3, 4},
                    new byte[] {0, 2, 1, 5, 7, 50, 1, 1, 3, 9, 2, 0, 1, 2, 3, 4, 2});

    /** One row of a type each. */
    private static final List<byte[]> BLOCK_CALLS =
            List.of(
                    new byte[13],
                    new byte[] {1, 3, 1, 2, 1, 1, 3, 5, 0, 1, 2, 3, 4},
                    new byte[] {2, 11, 1, 2, 1, 1, 3, 5, 0, 1, 2, 3, 4});

    private final Path folder;
    private final FuzzedRendezvous meeting = new FuzzedRendezvous();

    Targets(Path folder) throws IOException, InterruptedException {
        this.folder = folder;
    }

    List<Target> all() throws IOException {
        List<Target> targets = new ArrayList<>(new MatrixTargets(folder).all());
        targets.addAll(models());
        targets.addAll(records());
        targets.addAll(betweenProcesses());
        targets.addAll(texts());
        if (Gemms.nativeUnavailable().isEmpty()) {
            targets.add(reader("tiles", TILE_CALLS, new FuzzedTiles()::call));
            targets.add(reader("blocks", BLOCK_CALLS, new FuzzedBlocks()::call));
        }
        return targets;
    }

    private List<Target> models() {
        List<byte[]> seeds =
                Machines.names().stream()
                        .map(name -> bytes(MachineFile.toJson(Machines.named(name))))
                        .toList();
        String description = Machines.named("cpu-1gbe").description();
        return List.of(
                reader("machine", seeds, input -> MachineFile.parse("fuzzed.json", input)),
                file("machine-file", seeds, MachineFile::read),
                file("kept-model", seeds, kept -> FuzzedModel.kept(kept, description)));
    }

    private List<Target> records() throws IOException {
        byte[] run = resource("run.json");
        byte[] simulated = resource("sim.json");
        byte[] summed = resource("sums.json");
        return List.of(
                file("run-record", List.of(run, simulated, summed), FuzzedRecord::show),
                file("sweep-record", List.of(resource("sweep.json")), FuzzedRecord::show));
    }

    private List<Target> betweenProcesses() throws IOException {
        byte[] report = FuzzedCommand.rankReport();
        byte[] stamp = FuzzedCommand.dataStamp(false);
        return List.of(
                reader("rank-report", List.of(report), FuzzedCommand::readRankReport),
                reader("live-file", List.of(report), in -> FuzzedCommand.showLive(folder, in)),
                reader(
                        "progress-file",
                        List.of(new byte[16], bytes("0 0")),
                        in -> FuzzedCommand.showProgress(folder, in)),
                reader(
                        "data-stamp",
                        List.of(stamp),
                        in -> FuzzedCommand.readDataFolder(folder, in, OUTPUT_STAMP)),
                reader(
                        "summed-data-stamp",
                        List.of(FuzzedCommand.dataStamp(true)),
                        in -> FuzzedCommand.readDataFolder(folder, in, SUMMED_STAMP)),
                reader(
                        "output-stamp",
                        List.of(OUTPUT_STAMP, bytes("bf16 1 seed19\n")),
                        in -> FuzzedCommand.readDataFolder(folder, stamp, in)),
                reader(
                        "rank-end",
                        List.of(
                                FuzzedCommand.rankEnd(new IOException("no room")),
                                FuzzedCommand.rankEnd(meeting.stall())),
                        FuzzedCommand::readRankEnd),
                reader("control-file", List.of(meeting.genuine()), meeting::join).slow());
    }

    private List<Target> texts() {
        return List.of(
                reader(
                        "environment",
                        List.of(
                                bytes("OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\nCOLUMNS=80"),
                                bytes("PMI_RANK=0\nPMI_SIZE=4\nFORCE_COLOR=1\nTERM=dumb"),
                                bytes("WEFT_LAB_LINK=/bin/true\nWEFT_LAB_HOSTS=3")),
                        in -> {
                            MpiEnvironment.of(environment(in));
                            FuzzedCommand.readEnvironment(environment(in));
                            Lab.of(environment(in));
                        }),
                reader(
                        "rank-environment",
                        List.of(bytes(FuzzedRendezvous.environment())),
                        this::joinNowhere),
                reader(
                        "number-list",
                        List.of(bytes("4096"), bytes("1024,4096"), bytes("8..64")),
                        in -> FuzzedCommand.readNumbers(text(in))),
                reader(
                        "duration",
                        List.of(bytes("30s"), bytes("500ms"), bytes("2m"), bytes("7")),
                        in -> FuzzedCommand.readDuration(text(in))),
                reader(
                                "run-options",
                                List.of(
                                        bytes("-n 2 --gm 64 --gk 32 --gn 16 --dtype bf16 --seed 5"),
                                        bytes(
                                                "-n 4 --groups 2 --shards 5,3 --data seed19 --warmup 1"),
                                        bytes(
                                                "--op matmul-allreduce -n 3 --gk 32 --k-parts 20,0,12 --order whole"),
                                        bytes(
                                                "--op matmul-reduce-scatter -n 2 --gm 9 --shards 5,4 --algorithm chain --epilogue bias,gelu-tanh,residual"),
                                        bytes("--chunk-rows 4 --algorithm ring --deadline 5s"),
                                        bytes("--splits-per-rank 3 --launcher processes")),
                                in -> FuzzedCommand.readOptions(text(in).split(" ", MOST_WORDS)))
                        .slow());
    }

    /** A file stands where the folder should be: nobody is met, whatever the environment says. */
    private void joinNowhere(byte[] input) throws IOException {
        Path file = folder.resolve("no-folder");
        if (!Files.exists(file)) {
            Files.createFile(file);
        }
        Map<String, String> environment = environment(input);
        environment.put("WEFT_JOB", file.toString());
        try {
            FuzzedRendezvous.join(environment);
        } catch (UncheckedIOException e) {
            if (!String.valueOf(e.getMessage()).contains(file.toString())) {
                throw e;
            }
        }
    }

    private static Map<String, String> environment(byte[] input) {
        Map<String, String> environment = new LinkedHashMap<>();
        for (String line : text(input).split("\n", -1)) {
            int sign = line.indexOf('=');
            if (sign > 0) {
                environment.put(line.substring(0, sign), line.substring(sign + 1));
            }
        }
        return environment;
    }

    /** Something that returns nothing of interest. */
    @FunctionalInterface
    private interface Taker<T> {
        void take(T input) throws Exception;
    }

    private static Target reader(String name, List<byte[]> seeds, Taker<byte[]> taker) {
        return new Target(
                name,
                seeds,
                input -> {
                    taker.take(input);
                    return 0;
                });
    }

    private Target file(String name, List<byte[]> seeds, Taker<Path> taker) {
        Path file = folder.resolve(name + ".json");
        return reader(name, seeds, input -> taker.take(Files.write(file, input)));
    }

    static byte[] resource(String name) throws IOException {
        try (InputStream in = Targets.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new FileNotFoundException(name + " is not among Weft's classes");
            }
            return in.readAllBytes();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** One char for each byte: every input is a text. */
    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    @Override
    public void close() throws IOException {
        meeting.close();
    }
}
