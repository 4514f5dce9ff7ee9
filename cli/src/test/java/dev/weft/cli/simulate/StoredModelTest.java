package dev.weft.cli.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The model of this machine is stored among the user's caches, and nowhere else. */
class StoredModelTest {

    private static final Gemm ENGINE = Gemms.byName("scalar");
    private static final Machine MODEL = model(ENGINE.name());

    @TempDir Path temporary;

    private static Machine model(String engine) {
        Machine like = Machines.named("cpu-1gbe");
        CoreEngine cores = (CoreEngine) like.engine();
        int here = Runtime.getRuntime().availableProcessors();
        return new Machine(
                Machines.HERE,
                here + " cores, engine " + engine,
                List.of(),
                new CoreEngine(
                        here,
                        here,
                        cores.costs(),
                        cores.blockUs(),
                        cores.rowQuantum(),
                        cores.blockRows()),
                like.memory(),
                like.overheads(),
                like.consumption(),
                0,
                like.node(),
                null,
                Machine.Copies.PLAIN);
    }

    private Path file() {
        return temporary.resolve("weft").resolve("machine.json");
    }

    private Optional<Path> store(Supplier<Machine> measuring) {
        return StoredModel.storeIfMissing(file(), type -> ENGINE, DType.FP32, measuring, () -> {});
    }

    @Test
    void whatWasMeasuredIsStoredOnceForTheUserAlone() throws IOException {
        assertEquals(Optional.of(file()), store(() -> MODEL));
        assertEquals(MODEL, MachineFile.readCached(file()));
        assertEquals(Optional.empty(), store(() -> fail("measured again")));
        assertEquals(
                "rwx------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(file().getParent())));
    }

    @Test
    void aModelThatWasMeasuredBesideOtherProgramsCountsForAnHour() throws IOException {
        Machine busy =
                new Machine(
                        MODEL.name(),
                        MODEL.description(),
                        List.of("measured briefly while other programs used the cores"),
                        MODEL.engine(),
                        MODEL.memory(),
                        MODEL.overheads(),
                        MODEL.consumption(),
                        0,
                        MODEL.node(),
                        null,
                        Machine.Copies.PLAIN);
        assertEquals(Optional.of(file()), store(() -> busy));
        assertEquals(Optional.empty(), store(() -> fail("measured again")));
        Instant earlier = Instant.now().minus(Duration.ofMinutes(61));
        Files.setLastModifiedTime(file(), FileTime.from(earlier));
        assertEquals(Optional.of(file()), store(() -> MODEL));
        Files.setLastModifiedTime(file(), FileTime.from(earlier));
        assertEquals(Optional.empty(), store(() -> fail("an undisturbed one is kept")));
        assertEquals(MODEL, MachineFile.readCached(file()));
    }

    /** Its target may be any file of the user's. */
    @Test
    void aLinkInPlaceOfTheFileIsReplacedAndNotFollowed() throws IOException {
        Path precious = temporary.resolve("precious.json");
        MachineFile.write(Machines.named("trn2"), precious);
        String before = Files.readString(precious);
        Files.createDirectory(file().getParent());
        Files.createSymbolicLink(file(), precious);
        assertEquals(Optional.of(file()), store(() -> MODEL));
        assertEquals(before, Files.readString(precious));
        assertFalse(Files.isSymbolicLink(file()));
    }

    @Test
    void aFolderThatOthersCanWriteIsLeftAlone() throws IOException {
        Path folder = Files.createDirectory(file().getParent());
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertEquals(Optional.empty(), store(() -> fail("measured in vain")));
        try (var left = Files.list(folder)) {
            assertEquals(0, left.count());
        }
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        assertTrue(store(() -> MODEL).isPresent());
    }
}
