package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs whose products are summed over the ranks, which are threads, small. */
class SummedRunTest {

    @TempDir Path folder;

    private Invocation run(String arguments) {
        List<String> command = Invocation.shortRun(arguments.strip(), folder.resolve("out"));
        return Invocation.of(command.toArray(String[]::new));
    }

    private byte[] output(int rank) throws IOException {
        return Files.readAllBytes(folder.resolve("out/output_rank" + rank + ".bin"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--op matmul-reduce-scatter -n 2 --gm 64 --gk 33 --gn 17",
                "--op matmul-allreduce -n 2 --gm 64 --gk 33 --gn 17 --transpose-b",
                "--op matmul-reduce-scatter -n 3 --shards 40,0,19 --k-parts 5,0,28 --gn 17"
                        + " --algorithm direct --dtype fp32",
                "--op matmul-reduce-scatter -n 3 --shards 40,0,19 --k-parts 0,12,7 --gn 17"
                        + " --algorithm chain --out-dtype bf16 --chunk-rows 8",
                "--op matmul-reduce-scatter -n 3 --shards 0,0,19 --k-parts 12,7,0 --gn 17"
                        + " --algorithm mesh-push --data seed19 --splits-per-rank 3",
                "--op matmul-reduce-scatter -n 3 --gm 31 --gk 20 --gn 9 --algorithm sequential"
                        + " --order by-rank --dtype bf16",
                "--op matmul-allreduce -n 3 --shards 0,11,8 --k-parts 0,0,7 --gn 17 --algorithm"
                        + " chain --a-dtype fp32",
                "--op matmul-allreduce -n 3 --shards 5,0,6 --k-parts 4,0,7 --gn 17 --algorithm"
                        + " direct --transpose-b --npy",
                "--op matmul-allreduce -n 4 --gm 33 --k-parts 4,0,7,1 --gn 5 --algorithm mesh-push"
                        + " --out-dtype fp16 --engine scalar",
                "--op matmul-allreduce -n 4 --groups 2 --gm 33 --k-parts 4,7 --gn 5 --order by-rank",
                "--op matmul-allreduce -n 3 --gm 33 --k-parts 4,0,7 --gn 50 --order by-rank-bf16",
                "--op matmul-reduce-scatter -n 5 --replica-groups 3,1/0,4 --gm 33 --k-parts 4,7"
                        + " --gn 5 --algorithm chain",
                "--op matmul-reduce-scatter -n 5 --replica-groups 3,1/0,4,2 --gm 33 --gk 7 --gn 5",
                "--op matmul-reduce-scatter -n 3 --gm 0 --gk 20 --gn 8",
                "--op matmul-allreduce -n 1 --gm 10 --gk 20 --gn 8"
            })
    void manyKindsOfSumsPass(String arguments) {
        Invocation run = run(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints("Verification PASSED.", "product bitwise equal to the unfused one");
        run.assertPrints(Invocation.VIEWS);
        assertFalse(run.out().contains("gather"), run.out());
    }

    /** The stamp of these outputs is the longest. */
    @Test
    void aFolderIsUsedAgain() {
        for (int i = 0; i < 2; i++) {
            Invocation run =
                    run(
                            "--op matmul-reduce-scatter -n 2 --gm 8 --gk 8 --gn 8 --order by-rank-bf16");
            assertEquals(0, run.code(), run.err());
        }
    }

    /** One rank's bits, of which a reduce-scatter leaves each rank its rows. */
    @ParameterizedTest
    @CsvSource({"auto, '3,0,17'", "direct, '0,20,0'", "chain, '1,2,17'"})
    void theDefaultOrderGivesTheBitsOfOneRank(String algorithm, String parts) throws IOException {
        String shape = " --gm 40 --gk 20 --gn 12 ";
        assertEquals(0, run("--op matmul-allreduce -n 1" + shape).code());
        byte[] alone = output(0);
        String cut = shape + "-n 3 --algorithm " + algorithm + " --k-parts " + parts;
        assertEquals(0, run("--op matmul-allreduce" + cut).code());
        for (int rank = 0; rank < 3; rank++) {
            assertArrayEquals(alone, output(rank), "rank " + rank);
        }
        assertEquals(0, run("--op matmul-reduce-scatter --shards 25,0,15" + cut).code());
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int rank = 0; rank < 3; rank++) {
            all.write(output(rank));
        }
        assertEquals(15 * 12 * 4, output(2).length);
        assertArrayEquals(alone, all.toByteArray());
    }

    @Test
    void recordReportAndTraceTellOfSums() throws IOException {
        Path json = folder.resolve("r.json");
        Path report = folder.resolve("r.html");
        Path trace = folder.resolve("trace.json");
        Invocation run =
                run(
                        "--op matmul-reduce-scatter -n 3 --gm 90 --k-parts 30,0,40 --gn 50"
                                + " --algorithm chain --chunk-rows 10 --json "
                                + json
                                + " --report "
                                + report
                                + " --trace "
                                + trace);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints(
                "A [90, 70] fp16 in parts of 30,0,40 columns, B [70, 50] fp16 in as many rows, C"
                        + " fp32 in shards of 30,30,30 rows",
                "[SUCCESS] GEMM ReduceScatter (cpu, chain, ",
                "over sequential, which sums by rank and not in K's order");
        RunRecord record = RecordReader.read(json).run();
        assertEquals("matmul-reduce-scatter", record.problem().op());
        assertEquals("30,0,40", record.problem().kParts());
        assertEquals("whole", record.execution().order());
        assertEquals("chain", record.execution().requestedAlgorithm());
        assertEquals(null, record.verification().gatheredExact());
        assertTrue(record.views().sequentialComm().median() > 0, "the reduction takes time");
        ShownRun shown = RunView.of(record, "r.json");
        // Rank 0's nine chunks go to rank 2, which sends six of them to their owners.
        assertEquals(9 * 10 * 50 * 4 + 6 * 10 * 50 * 4, shown.analysis().links().bytes());
        assertFalse(shown.analysis().critical().isEmpty(), "a critical path");
        assertTrue(
                shown.analysis().advice().stream()
                        .noneMatch(advice -> advice.toString().contains("gather")),
                "advice about sums");
        assertTrue(Files.readString(report).contains("matmul-reduce-scatter"));
        assertTrue(Files.readString(trace).contains("\"release\""), "arrows");
    }

    @ParameterizedTest
    @ValueSource(strings = {"whole", "by-rank"})
    void verifyKnowsWhatWasSummed(String order) throws IOException {
        String data = folder.resolve("out").toString();
        for (String op : List.of("matmul-reduce-scatter", "matmul-allreduce")) {
            String parts = " -n 3 --gm 45 --gn 20 --k-parts 900,0,700 --order " + order;
            assertEquals(0, run("--op " + op + parts).code());
            Invocation right = Invocation.of("verify", "--data-dir", data);
            assertEquals(0, right.code(), right.err());
            right.assertPrints("in parts of 900,0,700 columns", "bitwise equal");
        }
        // An output of the other order is within the bound and has other bits.
        Path stamp = folder.resolve("out/outputs.txt");
        String text = Files.readString(stamp);
        String other =
                order.equals("whole")
                        ? text.replace("matmul-allreduce", "matmul-allreduce-by-rank")
                        : text.replace("-by-rank", "");
        Files.writeString(stamp, other);
        Invocation wrong = Invocation.of("verify", "--data-dir", data);
        assertEquals(ExitCode.FAILED, wrong.code());
        assertTrue(wrong.out().contains("DIFFERS"), wrong.out());
        assertEquals(0, Invocation.of("verify", "--loose", "--data-dir", data).code());
    }

    @Test
    void explainPrintsThePlan() {
        Invocation chain =
                run("--op matmul-allreduce -n 2 --gm 8 --gk 8 --gn 8 --algorithm chain --explain");
        chain.assertPrints(
                "copy 0:sums so far[0..4, 0..8] to 1:sums so far[0..4, 0..8] after 0.0 then 1.0",
                "copy 1:sums so far[0..4, 0..8] to 0:whole sums[0..4, 0..8] after 1.1 then 0.2",
                "Nothing was chosen: --algorithm chain was asked for");
        Invocation auto = run("--op matmul-allreduce -n 2 --gm 8 --gk 8 --gn 8 --explain");
        auto.assertPrints("The plan of all ranks:", "<- taken", "chain ", "direct ");
    }

    @Test
    void theUsersOwnFilesAreSummed() throws IOException {
        String files = " -n 3 --transpose-b" + OwnFilesRunTest.writeOwnFiles(folder);
        Invocation even = run("--op matmul-reduce-scatter" + files);
        assertEquals(0, even.code(), even.err());
        even.assertPrints("A [45, 31] fp32 in parts of 11,10,10 columns");
        Invocation uneven = run("--op matmul-allreduce --k-parts 30,1,0" + files);
        assertEquals(0, uneven.code(), uneven.err());
        run("--op matmul-allreduce --k-parts 30,1,1" + files).assertRefused("[45, 31] fp32");
    }

    /** Data of another cut of K is other data. */
    @Test
    void dataIsCutByK() throws IOException {
        String op = "--op matmul-reduce-scatter -n 2 --gm 24 --gn 16 --k-parts ";
        assertTrue(run(op + "20,12").out().contains("Generated"));
        assertEquals(24 * 20 * 2, Files.size(folder.resolve("out/pe_0_a.bin")));
        assertEquals(12 * 16 * 2, Files.size(folder.resolve("out/pe_1_b.bin")));
        assertTrue(run(op + "20,12 --algorithm chain").out().contains("Reusing"));
        assertTrue(run(op + "12,20").out().contains("Generated"));
        assertTrue(run("-n 2 --gm 24 --gk 32 --gn 16").out().contains("Generated"));
        String other = folder.resolve("other").toString();
        assertEquals(0, Invocation.ofWords("gen-data " + op + "3,4 --data-dir " + other).code());
        Invocation.of("verify", "--data-dir", other).assertRefused("the data is cut by K");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--keep-gathered | --keep-gathered with --op matmul-allreduce: expected none",
                "--peers host | --peers host says where the peers of a GPU are",
                "-r sim | --run-mode sim needs -v",
                "--base-m 8 | --base-m with --op",
                "--comm-blocks 2 | --comm-blocks with --op",
                "--rhs replicated | --rhs with --op",
                "--strict | --strict with --op",
                "-r npu | --run-mode npu with --op matmul-allreduce: expected cpu, cuda, sim or",
                "-r cuda --engine cublas | --engine cublas with --run-mode cuda and --op",
                "-r cuda --algorithm ring | --algorithm ring with --peers device: on the GPU",
                "-r cuda --peers host --algorithm direct | direct with --peers host: on the GPU",
                "-r cuda --order by-rank-bf16 | of fp16 operands: on the GPU expected --dtype bf16",
                "-r cuda --k-parts 24,8 | parts of K of 24,8 in order whole: GPUs sum 16 k",
                "--slow 1=2 | --slow {1=2.0} slows simulated ranks",
                "--algorithm tree | --algorithm with --op matmul-allreduce: unknown algorithm",
                "--algorithm bidirectional-ring | expected ring, which adds them in rank order",
                "--algorithm mesh-push --order whole | it sums in order by-rank",
                "--algorithm ring --order by-rank-bf16 | it sums in order by-rank, expected",
                "--order random | --order 'random': expected one of whole, by-rank",
                "--k-parts 1,2,3 | --k-parts [1, 2, 3]: expected 2 numbers",
                "--k-parts 1,2 --gk 4 | --k-parts [1, 2] are 3 columns, --gk says 4",
                "--k-parts 0,0 | --k-parts 0,0 are 0 together: expected 1",
                "--gn 0 | --gn 0: expected 1 to",
                "--chunk-rows 2 --splits-per-rank 2 | give one of them"
            })
    void whatDoesNotApplyIsRefused(String options, String expected) {
        run("--op matmul-allreduce -n 2 " + options).assertRefused(expected);
    }

    /** Simulated, and multiplied and verified on the CPU; beside a real run, its views too. */
    @Test
    void aSimulatedRunIsVerifiedInTheOrderAskedFor() {
        String shape = " -n 3 --gm 40 --k-parts 5,0,28 --gn 17 -v cpu-100gbe ";
        run("--op matmul-reduce-scatter -r sim --explain --order by-rank" + shape)
                .assertPrints(
                        "The plan of all ranks:",
                        "Candidates (chunks are per source):",
                        "Verification PASSED",
                        "[SUCCESS] GEMM ReduceScatter (sim:cpu-100gbe, ");
        run("--op matmul-allreduce -r sim --epilogue bias,gelu" + shape)
                .assertPrints("without the epilogue, which no model prices", "Verification PASSED");
        run("--op matmul-allreduce --algorithm chain" + shape)
                .assertPrints("Verification PASSED", "predicted");
    }

    @Test
    void aGatherHasNeitherPartsOfKNorAnOrder() {
        run("-n 2 --k-parts 1,2").assertRefused("--k-parts [1, 2] with --op allgather-matmul");
        run("-n 2 --order whole").assertRefused("--order whole with --op allgather-matmul");
        run("-n 2 --algorithm chain").assertRefused("--algorithm");
        run("--op matmul")
                .assertRefused("--op 'matmul': expected one of allgather-matmul, matmul-");
    }
}
