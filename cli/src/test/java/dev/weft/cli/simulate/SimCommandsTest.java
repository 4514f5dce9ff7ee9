package dev.weft.cli.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.weft.cli.Invocation;
import dev.weft.process.EveryOtherCase;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Simulated runs, sweeps and plans: small shapes, whose numbers must fit together. */
class SimCommandsTest {

    private static final double EPSILON = 1e-9;

    @TempDir Path folder;

    /** Scalars of a JSON text, by JSON pointer. */
    private static Map<String, String> values(String json) throws IOException {
        Map<String, String> values = new HashMap<>();
        try (JsonParser parser = new JsonFactory().createParser(json)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                if (token.isScalarValue()) {
                    values.put(
                            parser.getParsingContext().pathAsPointer().toString(),
                            parser.getText());
                }
            }
        }
        return values;
    }

    private static Map<String, String> json(String command) throws IOException {
        String priced = command.startsWith("run ") ? command + " --no-verify" : command;
        Invocation run = Invocation.of((priced + " --json -").split(" "));
        assertEquals(0, run.code(), run.err());
        return values(run.out());
    }

    private static double number(Map<String, String> values, String pointer) {
        assertTrue(values.containsKey(pointer), pointer);
        return Double.parseDouble(values.get(pointer));
    }

    private static double us(Map<String, String> record, String view) {
        return number(record, "/views/" + view + "/medianUs");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-v Ascend910B1 -n 8 --gm 2048 --gk 1024 --gn 1024",
                "-v Ascend910B1 -n 4 --gm 1024 --gk 1024 --gn 512 --base-m 64 --base-n 128",
                "-v trn2 -n 4 --gm 1024 --gk 512 --gn 512 --algorithm ring --splits-per-rank 4",
                "-v h200-nvlink8 -n 16 --gm 4096 --gk 512 --gn 512 --chunk-rows 64 --comm-blocks 2",
                "-v h200-pcie -n 2 --shards 100,28 --gk 256 --gn 128 --rhs column-sharded",
                "-v cpu-100gbe -n 6 --gm 600 --gk 128 --gn 96 --keep-gathered --slow 2=1.5",
                "-v cpu-1gbe -n 3 --gm 96 --gk 64 --gn 32 --compute-blocks 2 --dtype fp32",
                "-v h200-nvlink8 -n 4 --gm 2048 --gk 4096 --gn 512 --op matmul-reduce-scatter",
                "-v Ascend910B1 -n 3 --k-parts 900,0,24 --gm 600 --op matmul-allreduce",
                "-v trn2 -n 4 --gm 512 --gn 256 --op matmul-allreduce --order by-rank --slow 1=2",
                "-v cpu-100gbe -n 6 --gm 600 --op matmul-reduce-scatter --algorithm sequential",
                "-v cpu-100gbe -n 2 --gm 600 --op matmul-reduce-scatter --order by-rank-bf16",
                "-v cpu-100gbe -n 4 --gm 600 --op matmul-allreduce --groups 2 --chunk-rows 50"
            })
    void theViewsOfASimulatedRunFitTogether(String options) throws IOException {
        String command = "run -r sim " + options;
        Map<String, String> record = json(command);
        double pipelined = us(record, "pipelined");
        double sequential = us(record, "sequential");
        double product = us(record, "computeOnly");
        double gather = us(record, "commOnly");
        assertTrue(pipelined > 0, command);
        assertTrue(pipelined >= Math.max(product, gather) * (1 - EPSILON), command);
        assertEquals(
                sequential,
                us(record, "sequential/comm") + us(record, "sequential/compute"),
                EPSILON * sequential);
        assertEquals(sequential / pipelined, number(record, "/speedup"), EPSILON);
        assertEquals(
                Math.max(product, gather) / pipelined, number(record, "/limitFraction"), EPSILON);
        assertEquals("true", record.get("/simulated"));
        assertEquals("sim", record.get("/launcher"));
        assertEquals("simulated", record.get("/engine"));
        assertEquals("sim:" + record.get("/machine"), record.get("/device"));
        assertEquals("null", record.get("/verification"));
        assertEquals(command.contains("--op"), !record.get("/order").equals("null"), command);
        record.remove("/environment/started");
        Map<String, String> again = json(command);
        again.remove("/environment/started");
        assertEquals(record, again, "the same on every run");
    }

    /** Links between ranks are a group's own; the cores of a node are not. */
    @Test
    void groupsArePricedWithTheirShareOfTheMachine() throws IOException {
        String gpus = "run -r sim -v h200-nvlink8 --gm 4096 -n ";
        Map<String, String> four = json(gpus + 4);
        Map<String, String> strided = json(gpus + "8 --replica-groups 7,5,3,1/0,2,4,6");
        assertEquals(us(four, "pipelined"), us(strided, "pipelined"), EPSILON);
        assertEquals("7,5,3,1/0,2,4,6", strided.get("/problem/replicaGroups"));
        assertEquals("1", strided.get("/ranks/0/group"));
        assertEquals("0", strided.get("/ranks/7/group"));
        assertEquals("8", strided.get("/hosts/0"));
        double unlike = us(json(gpus + "7 --replica-groups 0,1/2,3,4,5"), "pipelined");
        assertEquals(
                Math.max(us(json(gpus + 2), "pipelined"), us(four, "pipelined")), unlike, EPSILON);
        double apart = us(json(gpus + "16 --replica-groups 0,1,8,9"), "commOnly");
        assertTrue(apart > us(four, "commOnly"), "on two nodes");
        String cpus = "run -r sim -v cpu-100gbe --dtype fp32 --out-dtype fp32 --gm 4096 -n ";
        double two = us(json(cpus + 2), "computeOnly");
        assertTrue(us(json(cpus + "4 --groups 2"), "computeOnly") > 1.5 * two, "half the cores");
        Map<String, String> others = json(cpus + "4 --replica-groups 3,1");
        assertEquals(two, us(others, "computeOnly"), EPSILON, "the others are idle");
        assertEquals("1", others.get("/ranks/0/rank"));
    }

    /** The source's own command, as it stands. */
    @Test
    void theExamplesCommandForTheSimulatorDoesAllThatItsDoes() throws IOException {
        Invocation run = simulate("-v Ascend910B1 -n 2 --gm 2048 --gk 2048 --gn 1024");
        run.assertPrints(
                "[INFO] Simulated on Ascend910B1: ",
                "[INFO] Running warmup...",
                "[INFO] Functional run completed. Verification PASSED.",
                "  Baseline:     ",
                "[SUCCESS] AllGather GEMM (sim:Ascend910B1, mesh-push, ",
                "(predicted)");
        run.assertPrints(Invocation.VIEWS);
        for (int rank = 0; rank < 2; rank++) {
            Path output = folder.resolve("out/output_rank" + rank + ".bin");
            assertEquals(2048 * 1024 * 4, Files.size(output), output.toString());
            Path a = folder.resolve("out/pe_" + rank + "_a.bin");
            assertEquals(1024 * 2048 * 2, Files.size(a), a.toString());
        }
        assertEquals(2048 * 1024 * 4, Files.size(folder.resolve("out/golden.bin")));
    }

    /** In the example, sequential is the transfers of the call and then its product. */
    @Test
    void theExamplesSequentialViewIsPredictedForItsMachines() throws IOException {
        Map<String, String> example = json("run -r sim -v Ascend910_9391 -n 4");
        assertEquals(
                us(example, "commOnly") + us(example, "computeOnly"),
                us(example, "sequential"),
                EPSILON);
        assertTrue(us(example, "baseline") > 0);
        Map<String, String> other = json("run -r sim -v h200-nvlink8 -n 4");
        assertFalse(other.containsKey("/views/baseline/medianUs"), other.toString());
    }

    @Test
    void theSummarySaysThatItIsSimulatedAndOnWhat() {
        Invocation run = simulate("-v Ascend910B1 -n 8 --gm 2048 --gk 1024 --gn 1024 --no-verify");
        assertTrue(run.out().startsWith("[INFO] Simulated on Ascend910B1: "), run.out());
        run.assertPrints(
                "Not verified (simulated; --verify multiplies on the CPU)",
                "[SUCCESS] AllGather GEMM (sim:Ascend910B1, mesh-push, simulated engine");
        run.assertPrints(Invocation.VIEWS);
        assertFalse(Files.exists(folder.resolve("out")), "nothing multiplied, nothing written");
    }

    private Invocation simulate(String options) {
        Invocation run =
                Invocation.of(
                        ("run -r sim " + options + " --data-dir " + folder.resolve("out"))
                                .split(" "));
        assertEquals(0, run.code(), run.err());
        return run;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-v Ascend910B1 -n 2 --gm 64 --gk 48 --gn 16",
                "-v h200-nvlink8 -n 3 --shards 30,0,41 --gk 33 --gn 17",
                "-v cpu-100gbe -n 2 --gm 40 --gk 24 --gn 12 --splits-per-rank 3"
            })
    void smallProductsAreMultipliedOnTheCpuBesideThePredictedTimes(String options)
            throws IOException {
        Path file = folder.resolve("r.json");
        Invocation run = simulate(options + " --json " + file);
        assertTrue(
                run.out().contains("Functional run completed. Verification PASSED. (On the CPU"),
                run.out());
        for (String name : List.of("pe_1_a.bin", "golden.bin", "output_rank0.bin")) {
            assertTrue(Files.isRegularFile(folder.resolve("out").resolve(name)), name);
        }
        assertEquals("true", values(Files.readString(file)).get("/verification/seedRulePassed"));
        Map<String, String> record = values(Files.readString(file));
        assertEquals("true", record.get("/verification/passed"));
        assertEquals("true", record.get("/verification/gatheredExact"));
        Map<String, String> predicted = json("run -r sim " + options);
        assertEquals(us(predicted, "pipelined"), us(record, "pipelined"));
        assertEquals(predicted.get("/algorithm"), record.get("/algorithm"));
    }

    /** Fewer blocks than units leave units idle, more add nothing; lanes are any number. */
    @Test
    void anyNumberOfBlocksIsPriced() throws IOException {
        String command = "run -r sim -v Ascend910B1 -n 4 --gm 4096 --gk 2048 --gn 1536";
        double all = us(json(command), "computeOnly");
        assertTrue(us(json(command + " --compute-blocks 12"), "computeOnly") > 1.5 * all);
        assertEquals(all, us(json(command + " --compute-blocks 32"), "computeOnly"), EPSILON);
        for (int blocks : List.of(1, 2, 5, 24, 1000)) {
            Map<String, String> record = json(command + " --comm-blocks " + blocks);
            assertEquals("mesh-push", record.get("/algorithm"));
            assertTrue(us(record, "pipelined") > 0, blocks + " blocks");
        }
    }

    @Test
    void largeProductsArePricedOnlyUnlessAskedFor() {
        Invocation run = simulate("-v Ascend910B1 -n 8 --gm 16384 --gk 4096 --gn 4096");
        run.assertPrints("Not verified (simulated; --verify multiplies on the CPU)");
        assertFalse(Files.exists(folder.resolve("out")), "nothing multiplied, nothing written");
    }

    @Test
    void aRecordHasSpansOfAllRanksUpToSixtyFourAndOfOneBeyond() throws IOException {
        Map<String, String> few = json("run -r sim -v h200-nvlink8 -n 8 --gm 4096 --gk 64 --gn 64");
        assertEquals("7", few.get("/ranks/7/rank"));
        assertTrue(few.containsKey("/ranks/7/tracks/0/spans/0/endNs"));
        double end = number(few, "/ranks/0/elapsedNs");
        assertTrue(end <= us(few, "pipelined") * 1e3 + 1, "no span ends after the call");
        Map<String, String> many =
                json("run -r sim -v h200-nvlink8 -n 72 --gm 7200 --gk 64 --gn 64");
        assertTrue(many.containsKey("/ranks/0/tracks/0/spans/0/endNs"));
        assertFalse(many.containsKey("/ranks/1/rank"));
        assertEquals("8", many.get("/hosts/8"));
    }

    @Test
    void autoIsTheCheapestCandidateThatExplainPrints() throws IOException {
        String problem = "-v h200-nvlink8 -n 8 --gm 32768 --gk 2048 --gn 1024";
        Invocation run = simulate(problem + " --explain --no-verify");
        List<String> lines =
                run.out()
                        .lines()
                        .filter(line -> Pattern.matches("  [a-z-]+ +[0-9].*", line))
                        .toList();
        assertTrue(lines.size() > 5, run.out());
        assertTrue(lines.getFirst().endsWith("<- taken"), run.out());
        assertEquals(1, lines.stream().filter(line -> line.contains("taken")).count());
        double auto = us(json("run -r sim " + problem), "pipelined");
        for (String algorithm : List.of("ring", "mesh-push", "mesh-pull", "sequential")) {
            Map<String, String> one =
                    json("run -r sim " + problem + " --chunk-rows 128 --algorithm " + algorithm);
            assertTrue(auto <= us(one, "pipelined") * (1 + EPSILON), algorithm);
            assertEquals(algorithm, one.get("/algorithm"));
        }
    }

    @Test
    void aSlowRankMakesTheCallLonger() throws IOException {
        String command =
                "run -r sim -v h200-pcie -n 4 --gm 2048 --gk 2048 --gn 65536 --algorithm ring";
        double even = us(json(command), "pipelined");
        double slowed = us(json(command + " --slow 1=3,2=1.5"), "pipelined");
        assertTrue(slowed > 1.5 * even, slowed + " us after " + even);
    }

    @Test
    void aSweepHasEveryCombinationAndOneBestForEachProblem() throws IOException {
        Path csv = folder.resolve("s.csv");
        String command =
                "sweep -v h200-nvlink8 --gm 1024..4096 --gk 512 --gn 256,512 -n 4,8"
                        + " --algorithm mesh-push,direct,sequential --splits 2,8 --csv "
                        + csv;
        Map<String, String> record = json(command);
        assertEquals("weft.sweep/1", record.get("/schema"));
        int rows = 3 * 2 * 2 * 3 * 2;
        assertTrue(record.containsKey("/rows/" + (rows - 1) + "/m"));
        assertFalse(record.containsKey("/rows/" + rows + "/m"));
        Map<String, Integer> best = new HashMap<>();
        for (int i = 0; i < rows; i++) {
            String row = "/rows/" + i + "/";
            if (record.get(row + "algorithm").equals("direct")) {
                assertTrue(record.get(row + "reason").contains("direct on h200-nvlink8"));
                continue;
            }
            double predicted = number(record, row + "predictedUs");
            double speedup = number(record, row + "sequentialUs") / predicted;
            assertEquals(speedup, number(record, row + "speedup"), EPSILON);
            assertTrue(number(record, row + "limitFraction") <= 1 + EPSILON);
            boolean isSequential = record.get(row + "algorithm").equals("sequential");
            assertTrue(!isSequential || speedup <= 1, "the baseline is the best sequential one");
            best.merge(
                    problem(record, row),
                    record.get(row + "best").equals("true") ? 1 : 0,
                    Integer::sum);
        }
        assertEquals(12, best.size());
        assertTrue(best.values().stream().allMatch(count -> count == 1), best.toString());
        List<String> lines = Files.readAllLines(csv);
        assertEquals(1 + rows, lines.size());
        assertTrue(lines.getFirst().startsWith("m,k,n,ranks,algorithm,"));
    }

    private static String problem(Map<String, String> record, String row) {
        return record.get(row + "m")
                + " "
                + record.get(row + "n")
                + " "
                + record.get(row + "ranks");
    }

    @Test
    void aSweepIsATableAndWhatTheMachineCannotDoIsARow() {
        Invocation sweep =
                Invocation.of("sweep", "-v", "Ascend910B1", "-n", "8,32", "--algorithm", "all");
        assertEquals(0, sweep.code(), sweep.err());
        assertTrue(sweep.out().startsWith("[INFO] Simulated on Ascend910B1"), sweep.out());
        assertTrue(sweep.out().contains("expected at most 16"), sweep.out());
        assertEquals(1, sweep.out().lines().filter(line -> line.endsWith(" *")).count());
    }

    @ParameterizedTest
    @CsvSource({
        "Ascend910B1,8,allgather-matmul --rhs replicated",
        "h200-nvlink8,8,allgather-matmul",
        "trn2,4,allgather-matmul",
        "cpu-1gbe,2,allgather-matmul",
        "h200-nvlink8,4,matmul-reduce-scatter",
        "cpu-1gbe,2,matmul-allreduce"
    })
    void aSweepAgreesWithARun(String machine, int ranks, String op) throws IOException {
        String problem =
                " -v " + machine + " -n " + ranks + " --gm 1024 --gk 512 --gn 256 --op " + op;
        Map<String, String> run = json("run -r sim" + problem + " --algorithm mesh-push");
        Map<String, String> sweep = json("sweep" + problem + " --algorithm mesh-push");
        assertEquals(us(run, "pipelined"), number(sweep, "/rows/0/predictedUs"), EPSILON);
        assertEquals(
                number(run, "/limitFraction"), number(sweep, "/rows/0/limitFraction"), EPSILON);
        assertEquals(run.get("/lanes"), sweep.get("/rows/0/lanes"));
    }

    @EveryOtherCase
    @ParameterizedTest
    @ValueSource(
            strings = {
                "Ascend910B1",
                "h200-nvlink8",
                "trn2",
                "cpu-100gbe",
                "h200-pcie",
                "h200-nvlink8 --op matmul-reduce-scatter",
                "cpu-100gbe --op matmul-allreduce --order by-rank"
            })
    void aPlansAnswersFitTogether(String machine) throws IOException {
        String command = "plan -v " + machine + " --gm 2048 --gk 1024 --gn 2048 -n 2,4,8";
        Map<String, String> plan = json(command);
        assertEquals("weft.plan/1", plan.get("/schema"));
        double best = number(plan, "/best/predictedUs");
        for (int i = 0; i < 3; i++) {
            String choice = "/choices/" + i + "/";
            assertEquals(2 << i, (int) number(plan, choice + "ranks"));
            double predicted = number(plan, choice + "predictedUs");
            assertTrue(predicted >= best, "the best is the fastest");
            assertEquals(
                    number(plan, choice + "unoverlappedUs") / predicted,
                    number(plan, choice + "speedup"),
                    EPSILON);
            assertTrue(number(plan, choice + "limitFraction") <= 1 + EPSILON);
            assertTrue(
                    number(plan, choice + "efficiency")
                            <= number(plan, choice + "limitFraction") + EPSILON);
        }
        for (int i = 0; i < 3; i++) {
            String twice = "/twice/" + i + "/";
            double predicted = number(plan, twice + "predictedUs");
            assertEquals(best / predicted, number(plan, twice + "speedup"), EPSILON);
            assertTrue(predicted <= best * 1.001, plan.get(twice + "what") + " makes it no slower");
        }
        assertTrue(plan.containsKey("/overlapByRows/0/m"));
        assertTrue(plan.containsKey("/overlapByLinks/2/linkFactor"));
    }

    /** As many columns, or as large a K, as a rank's experts multiply on average. */
    @ParameterizedTest
    @CsvSource({
        "'', --gk 1024 --gn 1536 --rhs replicated",
        "--op matmul-reduce-scatter, --gk 6144 --gn 2048"
    })
    void experts(String op, String same) throws IOException {
        String plan = "plan -v h200-nvlink8 --gm 4096 -n 8 " + op + " ";
        String experts = plan + "--gk 1024 --gn 2048 --experts 64 --experts-per-row 6";
        Map<String, String> even = json(experts.replaceAll(" +", " "));
        Map<String, String> product = json((plan + same).replaceAll(" +", " "));
        double best = number(even, "/best/predictedUs");
        assertEquals(number(product, "/best/predictedUs"), best, EPSILON);
        Map<String, String> skewed = json((experts + " --routing zipf:1.2").replaceAll(" +", " "));
        // Sums take most of their time on the links.
        double slower = number(skewed, "/best/predictedUs") / best;
        assertTrue(slower > (op.isEmpty() ? 1.5 : 1.001), "" + slower);
        assertTrue(skewed.get("/experts").contains("rank 0 of 8 gets the most rows"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " --op matmul-allreduce"})
    void aPlanSaysItInWordsAndItsCommandGivesItsTime(String op) throws IOException {
        String plan = "plan -v h200-nvlink8 --gm 4096 --gk 2048 --gn 4096" + op;
        Invocation words = Invocation.of(plan.split(" "));
        assertEquals(0, words.code(), words.err());
        for (String part :
                List.of(
                        "Fastest: ",
                        "Overlap stops paying",
                        "If one of these were doubled",
                        "links:")) {
            assertTrue(words.out().contains(part), part + " in " + words.out());
        }
        String command =
                words.out()
                        .lines()
                        .filter(line -> line.contains("./weft run"))
                        .findFirst()
                        .orElseThrow()
                        .strip()
                        .substring("./weft ".length());
        Map<String, String> run = json(command);
        assertEquals(number(json(plan), "/best/predictedUs"), us(run, "pipelined"), EPSILON);
    }

    @Test
    void aMachineOfOnesOwnIsAFile() throws IOException {
        Path file = folder.resolve("twice.json");
        String shipped = Files.readString(machineFile("trn2"));
        Files.writeString(file, shipped.replace("\"trn2\"", "\"my-machine\""));
        Map<String, String> own = json("run -r sim -v " + file + " --gm 256 --gk 128 --gn 64");
        Map<String, String> same = json("run -r sim -v trn2 --gm 256 --gk 128 --gn 64");
        assertEquals("my-machine", own.get("/machine"));
        assertNotEquals(own.get("/machine"), same.get("/machine"));
        assertEquals(us(same, "pipelined"), us(own, "pipelined"));
        assertFalse(own.values().stream().anyMatch(value -> value.contains(folder.toString())));
    }

    private Path machineFile(String name) throws IOException {
        Path file = folder.resolve(name + ".json");
        MachineFile.write(Machines.of(name), file);
        return file;
    }
}
