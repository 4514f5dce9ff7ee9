package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Main;
import dev.weft.ffi.MpiFamily;
import dev.weft.process.EveryOtherCase;
import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The layers of examples/mlp and examples/experts have the same bits on any number of ranks,
 * whatever these are.
 */
@Execution(ExecutionMode.CONCURRENT)
class MlpIT {

    private static final Path EXAMPLES = Path.of("..", "examples");

    /** Compiled once: as a source file every rank would compile it. */
    @TempDir static Path classes;

    /** By type; every test compares with it. */
    private static final Map<String, String> OF_ONE_RANK = new ConcurrentHashMap<>();

    @TempDir Path folder;

    @BeforeAll
    static void compile() throws Exception {
        List<String> javac =
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "javac").toString(),
                        "-d",
                        classes.toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        EXAMPLES.resolve(Path.of("mlp", "Mlp.java")).toString(),
                        EXAMPLES.resolve(Path.of("experts", "MixtureOfExperts.java")).toString());
        ChildProcess compiler = ChildProcess.of(classes, javac).run();
        assertEquals(0, compiler.code(), compiler::toString);
    }

    private ChildProcess.Setup mlp(String... arguments) {
        return program("Mlp", arguments);
    }

    private ChildProcess.Setup program(String name, String... arguments) {
        ChildProcess.Setup setup = ChildProcess.java(folder, name, List.of(arguments));
        setup.builder().command().replaceAll(MlpIT::withExample);
        return setup.wellCompiled();
    }

    private static String withExample(String word) {
        boolean isPath = word.equals(ChildProcess.CLASS_PATH);
        return isPath ? word + File.pathSeparator + classes : word;
    }

    /** What it prints for so many ranks, one after the other; the digest is in all the same. */
    private static String digest(ChildProcess run, int... ranks) throws Exception {
        assertEquals(0, run.code(), run::toString);
        List<String> lines = run.out().lines().filter(line -> line.contains("digest")).toList();
        assertEquals(ranks.length, lines.size(), run::toString);
        List<String> digests = new ArrayList<>();
        for (int i = 0; i < ranks.length; i++) {
            assertTrue(lines.get(i).startsWith(ranks[i] + " ranks, "), run::toString);
            digests.add(lines.get(i).replaceFirst(".* digest (?=[0-9a-f]{16}$)", ""));
        }
        assertEquals(1, digests.stream().distinct().count(), run::toString);
        return digests.getFirst();
    }

    private String ofOneRank(String type) throws Exception {
        String known = OF_ONE_RANK.get(type);
        if (known == null) {
            known = digest(mlp(type, "1").run(), 1);
            OF_ONE_RANK.put(type, known);
        }
        return known;
    }

    @ParameterizedTest
    @ValueSource(strings = {"fp32", "bf16"})
    void threads(String type) throws Exception {
        OF_ONE_RANK.put(
                type, digest(mlp(type, "1", "2", "3", "5", "7", "8").run(), 1, 2, 3, 5, 7, 8));
    }

    @EveryOtherCase
    @ParameterizedTest
    @CsvSource({"2, fp32", "3, bf16"})
    void processes(int ranks, String type) throws Exception {
        List<String> launcher = ChildProcess.java();
        launcher.addAll(List.of(Main.class.getName(), "launch", "-n", ranks + "", "--"));
        assertEquals(ofOneRank(type), digest(mlp(type).under(launcher).run(), ranks));
    }

    @Test
    void experts() throws Exception {
        String name = "MixtureOfExperts";
        String alone = digest(program(name, "small", "1").run(), 1);
        List<String> launcher = ChildProcess.java();
        launcher.addAll(List.of(Main.class.getName(), "launch", "-n", "3", "--"));
        assertEquals(alone, digest(program(name, "small").under(launcher).run(), 3));
    }

    /** Each rank as if on a host of its own. */
    @Test
    void expertsOnHosts() throws Exception {
        String name = "MixtureOfExperts";
        String alone = digest(program(name, "small", "1").run(), 1);
        List<String> mpi = MpiRunIT.launcher(MpiFamily.MPICH, 3);
        ChildProcess.Setup setup = program(name, "small").under(mpi);
        setup.builder().environment().remove("WEFT_MPI_LIBRARY");
        setup.environment("JAVA_TOOL_OPTIONS", MpiRunIT.HOSTS_OF_ONE);
        assertEquals(alone, digest(setup.run(), 3));
    }

    /** As if each rank were on a host of its own, and on one host. */
    @EveryOtherCase
    @ParameterizedTest
    @CsvSource({"OPEN_MPI, 2, true, bf16", "MPICH, 2, false, fp32"})
    void ranksOfMpi(MpiFamily family, int ranks, boolean hosts, String type) throws Exception {
        ChildProcess.Setup setup = mlp(type).under(MpiRunIT.launcher(family, ranks));
        setup.builder().environment().remove("WEFT_MPI_LIBRARY");
        if (hosts) {
            setup.environment("JAVA_TOOL_OPTIONS", MpiRunIT.HOSTS_OF_ONE);
        }
        assertEquals(ofOneRank(type), digest(setup.run(), ranks));
    }

    @ParameterizedTest
    @Tag("long")
    @CsvSource({"OPEN_MPI, 3, true, fp32", "MPICH, 3, true, bf16"})
    void moreRanksOfMpi(MpiFamily family, int ranks, boolean hosts, String type) throws Exception {
        ranksOfMpi(family, ranks, hosts, type);
    }
}
