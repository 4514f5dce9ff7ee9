package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.UsageException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code weft launch} in this JVM: its options, and where ranks print. */
class LaunchTest {

    @TempDir Path folder;

    /** Options, then a script that every rank runs. */
    private static Invocation launch(String options, String... program) {
        return Invocation.of(
                Stream.concat(Stream.of(("launch " + options).split(" ")), Stream.of(program))
                        .toArray(String[]::new));
    }

    private static Set<String> lines(String text) {
        return text.lines().collect(Collectors.toSet());
    }

    @Test
    void theRankIsBeforeEachLineAndTheProgramKeepsItsOptions() {
        Invocation run =
                launch(
                        "-n 2 --prefix",
                        "sh",
                        "-c",
                        "printf '%s %s\\nno end' $1 $RANK; echo careful >&2",
                        "sh",
                        "--its-option");
        assertEquals(0, run.code(), run.err());
        assertEquals(
                Set.of("[0] --its-option 0", "[0] no end", "[1] --its-option 1", "[1] no end"),
                lines(run.out()));
        assertEquals(Set.of("[0] careful", "[1] careful"), lines(run.err()));
    }

    @Test
    void everyRankHasAFileForWhatItPrints() throws Exception {
        Path logs = folder.resolve("a/b");
        String script = "echo out $RANK; echo err $RANK >&2; exit $((RANK * 7))";
        Invocation run = launch("-n 2 --log-dir " + logs, "sh", "-c", script);
        assertEquals(7, run.code(), run.err());
        assertEquals("", run.out());
        assertEquals("out 0\nerr 0\n", Files.readString(logs.resolve("rank-0.log")));
        assertEquals(
                "weft: rank 1 failed with exit code 7; its output is in "
                        + logs.resolve("rank-1.log"),
                run.err().strip());
        Invocation both = launch("-n 2 --tee 3 --log-dir " + logs, "sh", "-c", "echo new");
        assertEquals(Set.of("[0] new", "[1] new"), lines(both.out()), both.err());
        assertEquals("new\n", Files.readString(logs.resolve("rank-1.log")));
    }

    @Test
    void torchrunsOptionsAreKnown() {
        Invocation run =
                launch(
                        "--nproc_per_node 2 --nnodes=1:1 --rdzv_backend c10d --rdzv_endpoint"
                                + " 127.0.0.1:29507 --rdzv-id mine --no_python --standalone"
                                + " --max_restarts 0 --prefix",
                        "sh",
                        "-c",
                        "echo $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RUN_ID");
        assertEquals(0, run.code(), run.err());
        String told = "2 127.0.0.1 29507 mine";
        assertEquals(Set.of("[0] " + told, "[1] " + told), lines(run.out()));
    }

    /** Any program, of which Weft knows nothing. */
    @Test
    void aRankThatFailsIsStartedAgain() throws Exception {
        Path logs = folder.resolve("logs");
        String script =
                "cd "
                        + folder
                        + "; echo x >>life-$RANK; echo life $(wc -l <life-$RANK); test $RANK = 0 ||"
                        + " test $(wc -l <life-1) = 3 || exit 7";
        Invocation run = launch("-n 2 --max-restarts 2 --log-dir " + logs, "sh", "-c", script);
        assertEquals(0, run.code(), run.err());
        assertEquals(
                List.of(
                        "weft: rank 1 failed with exit code 7: restart 1 of 2",
                        "weft: rank 1 failed with exit code 7: restart 2 of 2"),
                run.err().lines().toList());
        assertEquals("life 1\n", Files.readString(logs.resolve("rank-0.log")));
        assertEquals("life 1\nlife 2\nlife 3\n", Files.readString(logs.resolve("rank-1.log")));
        Files.delete(folder.resolve("life-1"));
        Invocation shown = launch("-n 2 --restarts 1 --prefix", "sh", "-c", script);
        assertEquals(7, shown.code(), shown.err());
        assertEquals(Set.of("[0] life 2", "[1] life 1", "[1] life 2"), lines(shown.out()));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "--nnodes 2 | --nnodes 2: expected 1; ranks on several hosts need MPI: --mpi",
                "--restarts -1 | --restarts -1: expected 0 to ",
                "--max-restarts x | '--max-restarts': 'x': expected a whole number",
                "--mpi --restarts 3 | --restarts 3 does not go with --mpi, since MPI ends",
                "--rdzv-backend etcd | --rdzv-backend 'etcd': expected one of c10d, static",
                "--rdzv-endpoint localhost:x | --rdzv-endpoint localhost:x: expected a name of",
                "--tee 3 | --tee 3: expected --log-dir DIR as well",
                "--log-dir /dev/null/x | --log-dir /dev/null/x: expected a folder",
                "--hostfile h.txt | --hostfile h.txt is for mpirun: expected --mpi as well",
                "--mpi --prefix | do not go with --mpi",
                "--mpi --mpi-args \"x | --mpi-args '\"x': expected a second \""
            })
    void whatDoesNotFitIsRefused(String options, String expected) {
        launch(options, "true").assertRefused(expected);
    }

    @Test
    void argumentsOfMpirunAreSplitAsAShellDoes() {
        assertEquals(
                List.of("--map-by", "ppr:2:node", "-x", "A=b c", "it's", "", "d\"e"),
                MpiCommandLine.words(
                        "--mpi-args", "  --map-by ppr:2:node\t-x \"A=b c\" it\\'s '' d\\\"e "));
        for (String open : List.of("\"x", "a 'b c", "a\"", "\"\\\"")) {
            assertThrows(UsageException.class, () -> MpiCommandLine.words("--mpi-args", open));
        }
    }

    @Test
    void whatFollowsTheProgramIsTheProgramsOwn() {
        Invocation run =
                launch(
                        "-n 1 --prefix",
                        "sh",
                        "-c",
                        "printf '%s ' \"$@\"",
                        "sh",
                        "-n",
                        "7",
                        "--",
                        "-V");
        assertEquals("[0] -n 7 -- -V", run.out().strip(), run.err());
    }
}
