package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.sim.MachineFile;
import dev.weft.tensor.DType;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The first run with auto stores a model of this machine, and says so. */
class StoredModelIT {

    private static final String AUTO =
            "run -n 2 --gm 48 --gk 32 --gn 16 --engine scalar --warmup 1 --iterations 2 ";

    @TempDir Path folder;

    private Path model() {
        String name =
                "machine-%d-cores-engine-scalar.json"
                        .formatted(Runtime.getRuntime().availableProcessors());
        return folder.resolve("caches").resolve("weft").resolve(name);
    }

    private ChildProcess run(String arguments) throws Exception {
        ChildProcess run =
                ChildProcess.weft(
                                folder,
                                (arguments + " --data-dir " + folder.resolve("out")).strip())
                        .environment("XDG_CACHE_HOME", folder.resolve("caches"))
                        .run();
        assertEquals(0, run.code(), run::toString);
        return run;
    }

    @Test
    void theFirstRunWithAutoStoresAModelAndSaysSo() throws Exception {
        run(AUTO + "--algorithm ring");
        assertFalse(Files.exists(model()), "nothing was to be chosen");
        ChildProcess first = run(AUTO + "--dtype fp32 --launcher processes");
        assertTrue(first.out().contains("Measured this machine for auto"), first::toString);
        assertTrue(MachineFile.readCached(model()).engine().knows(DType.FP32));
        byte[] stored = Files.readAllBytes(model());
        ChildProcess second = run(AUTO + "--dtype fp32");
        assertFalse(second.out().contains("Measured this machine"), second::toString);
        assertEquals(-1, java.util.Arrays.mismatch(stored, Files.readAllBytes(model())));
    }

    @Test
    void aQuietRunStoresInSilence() throws Exception {
        ChildProcess quiet = run(AUTO + "--quiet");
        assertFalse(quiet.out().contains("Measured this machine"), quiet::toString);
        assertTrue(Files.exists(model()));
    }
}
