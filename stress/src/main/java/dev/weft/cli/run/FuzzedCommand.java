package dev.weft.cli.run;

import dev.weft.cli.console.Colours;
import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.DataStamp;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.message.RecordBytes;
import dev.weft.cli.options.Durations;
import dev.weft.cli.options.NumberList;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.view.TimelinePicture;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;

/**
 * The command's readers, which are for its own package, opened to the fuzzer: each hands on what it
 * is given and nothing else. Any thread may call it.
 */
public final class FuzzedCommand {

    private FuzzedCommand() {}

    /** A report as a rank writes it, with one of everything in it. */
    public static byte[] rankReport() {
        Timeline.Span moved =
                new Timeline.Span(Timeline.Kind.TRANSFER, 1, 1, 0, 2, 0, 8, 128, 10, 20);
        Timeline.Span multiplied = Timeline.Span.local(Timeline.Kind.COMPUTE, 0, 0, 0, 8, 20, 40);
        return RecordBytes.of(
                new RankReport(
                        "ring",
                        "cpu",
                        "vector",
                        1,
                        1,
                        8,
                        List.of(new RoundTimes(5, 5, 5, 1, 5, 5, 0)),
                        true,
                        true,
                        false,
                        List.of("a candidate"),
                        List.of("a plan"),
                        new Timeline(
                                0,
                                100,
                                50,
                                List.of(
                                        new Timeline.Track("lane 0", List.of(moved)),
                                        new Timeline.Track("worker 0", List.of(multiplied))))));
    }

    public static void readRankReport(byte[] report) throws IOException {
        RecordBytes.read(RankReport.class, report);
    }

    /** Shows a round that a rank has left in {@code folder}, as a command does while ranks run. */
    public static void showLive(Path folder, byte[] report) throws IOException {
        Files.write(folder.resolve("live-0"), report);
        RankReport.LIVE.take(folder, 0);
    }

    /** What a rank that has failed so leaves for its starter. */
    public static byte[] rankEnd(Throwable failure) {
        return RecordBytes.of(RankFailure.of(failure));
    }

    public static void readRankEnd(byte[] end) throws IOException {
        RecordBytes.read(RankFailure.class, end);
    }

    public static void showProgress(Path folder, byte[] progress) throws IOException {
        Files.write(folder.resolve("progress-0"), progress);
        ProgressFile.show(folder, new Progress(false));
    }

    /** The stamp of a folder of generated data, of a gather or of products that are summed. */
    public static byte[] dataStamp(boolean sums) {
        return DataStamp.write(
                        new ProblemSpec(
                                4,
                                ReplicaGroups.equal(4, 2),
                                Shards.of(5, 3),
                                16,
                                8,
                                DType.FP16,
                                DType.BF16,
                                DType.FP32,
                                !sums,
                                false,
                                "normal",
                                19,
                                sums ? new ProblemSpec.Sums(true, Shards.of(16, 0)) : null,
                                null,
                                null),
                        true)
                .getBytes(StandardCharsets.UTF_8);
    }

    /** Reads a folder of data whose stamps are these, as {@code verify} does. */
    public static void readDataFolder(Path folder, byte[] inputs, byte[] outputs)
            throws IOException {
        Files.write(folder.resolve("data.txt"), inputs);
        Files.write(folder.resolve("outputs.txt"), outputs);
        DataFolder.existing(folder, null).outputs();
    }

    public static void readNumbers(String text) {
        refusing(
                () -> {
                    NumberList.parse("--gm", text, 0, 1L << 40);
                    NumberList.parseInts("--n-ranks", text, 0, 1 << 20);
                });
    }

    public static void readDuration(String text) {
        refusing(() -> new Durations().convert(text));
    }

    /** Reads the options of {@code run} and checks them; runs nothing. */
    public static void readOptions(String... arguments) {
        // As in the command, where the parser has no voice of its own.
        CommandLine.tracer().setLevel(CommandLine.TraceLevel.OFF);
        refusing(
                () -> {
                    RunOptions options = new RunOptions();
                    new CommandLine(options).parseArgs(arguments);
                    options.problem.spec();
                    options.executionSpec();
                    options.fromFiles();
                });
    }

    /** What the user gets to see of a refusal, which may well repeat what the user has typed. */
    private static void refusing(Runnable reading) {
        try {
            reading.run();
        } catch (ParameterException | TypeConversionException | UsageException e) {
            throw new UsageException(ErrorMessage.oneLine(e.getMessage()));
        }
    }

    public static void readEnvironment(Map<String, String> environment) {
        TimelinePicture.width(environment);
        Colours.of(environment, true);
    }
}
