package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.Invocation;
import dev.weft.cuda.Gpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The source systems' commands on a GPU, small. */
@Tag("gpu")
class SourceCudaIT {

    @TempDir Path folder;

    @BeforeEach
    void needsAGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 4",
                "-n 4 --tiled --m 256 --lnc 2 --dtype fp16",
                "-n 4 --groups 2 --rows --m 100 --k 64",
                "-n 6 --replica-groups 4,0/5,1,3 --m 100 --k 64",
                "-n 2 --launcher processes"
            })
    void gathersAreExactOnAGpu(String options) throws IOException {
        Invocation run = Invocation.ofWords("gather" + files() + options);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints("[SUCCESS] AllGather ", "(cuda: ", "exact on every rank", "Plain copy:");
        assertFiles("\"exact\" : true");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ring -n 4 --m 128 --k 512 --n-local 128",
                "ring -n 3 --m 50 --k 264 --n-local 72 --dtype fp16 --lnc 2",
                "fgcc -n 4 --lnc 2 --m 64 --k 256 --n 256",
                "fgcc -n 4 --lnc 2 --m 64 --k 256 --n 256 --force-hbm",
                "fgcc -n 4 --groups 2 --m 64 --k 256 --n 256",
                "fgcc -n 7 --replica-groups 5,1/0,2,3,6 --m 64 --k 256 --n 256",
                "helion -n 4 --m 512 --n 256 --k 512 --splits-per-rank 2",
                "helion -n 2 --m 64 --n 72 --k 128 --dtype fp16",
                "helion -n 2 --m 512 --n 256 --k 512 --block-sizes 128,128,64",
                "ring -n 2 --m 128 --k 512 --n-local 128 --launcher processes",
                "fgcc -n 2 --m 64 --k 256 --n 256 --launcher processes",
                "helion -n 2 --m 512 --n 256 --k 512 --launcher processes"
            })
    void everyRankPassesOnAGpu(String command) throws IOException {
        Invocation run = Invocation.ofWords(command + files());
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints(Invocation.VIEWS);
        run.assertPrints("on the GPU: ", "(cuda: ", "PASS");
        assertFiles("\"bitwiseEqualToUnfused\" : true");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ring -n 2 --m 128 --k 512 --n-local 128",
                "fgcc -n 2 --m 64 --k 256 --n 256",
                "gather -n 2",
                "helion -n 2 --m 512 --n 256 --k 512"
            })
    void mpiStartsTheRanksOnAGpu(String command) throws Exception {
        SourceLaunchIT.assumeMpi();
        ChildProcess run = SourceLaunchIT.weft(folder, command + " --launcher mpi" + files()).run();
        assertEquals(0, run.code(), run::toString);
        assertFiles("\"launcher\" : \"mpi\"");
    }

    private String files() {
        return " -r cuda --warmup 1 --iterations 3 --json %s --report %s --trace %s "
                .formatted(
                        folder.resolve("x.json"),
                        folder.resolve("x.html"),
                        folder.resolve("t.json"));
    }

    private void assertFiles(String part) throws IOException {
        String record = Files.readString(folder.resolve("x.json"));
        assertTrue(record.contains("\"device\" : \"cuda: "), record);
        assertTrue(record.contains(part), record);
        assertTrue(Files.readString(folder.resolve("x.html")).contains("weft-data"), "a page");
        assertTrue(Files.readString(folder.resolve("t.json")).contains("traceEvents"), "a trace");
    }
}
