package dev.weft.tune;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The model of this machine is kept among the user's caches, and nowhere else. */
class HostModelTest {

    private static final Machine MODEL = Machines.named("cpu-1gbe");

    @TempDir Path temporary;

    private Path file() {
        return temporary.resolve("weft").resolve("machine.json");
    }

    private Machine machine(Supplier<Machine> measuring) {
        return HostModel.measured(
                file(), MODEL.description(), DType.FP32, null, measuring, () -> {});
    }

    @Test
    void whatWasMeasuredIsKeptForTheNextProcess() throws IOException {
        assertSame(MODEL, machine(() -> MODEL));
        assertEquals(MODEL, machine(() -> fail("measured again")));
        assertEquals(
                "rwx------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(file().getParent())));
    }

    /** Its target may be any file of the user's. */
    @Test
    void aLinkInPlaceOfTheFileIsNotFollowed() throws IOException {
        Path precious = temporary.resolve("precious.json");
        MachineFile.write(Machines.named("trn2"), precious);
        byte[] before = Files.readAllBytes(precious);
        Files.createDirectory(file().getParent());
        Files.createSymbolicLink(file(), precious);
        assertSame(MODEL, machine(() -> MODEL));
        assertEquals(-1, mismatch(before, precious));
        assertFalse(Files.isSymbolicLink(file()), "the file has taken the place of the link");
        assertEquals(MODEL, machine(() -> fail("measured again")));
    }

    /** What others can write is neither believed nor written to. */
    @Test
    void aFolderThatOthersCanWriteIsNotUsed() throws IOException {
        Path folder = Files.createDirectory(file().getParent());
        MachineFile.write(MODEL, file());
        byte[] planted = Files.readAllBytes(file());
        Machine measured = Machines.named("cpu-100gbe");
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertSame(measured, machine(() -> measured));
        assertEquals(-1, mismatch(planted, file()));
        assertFalse(Files.exists(folder.resolve("machine.lock")));
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwxrwx---"));
        assertSame(measured, machine(() -> measured), "others could replace the folder");
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwx------"));
        assertEquals(MODEL, machine(() -> fail("measured again")));
        assertTrue(Files.exists(folder.resolve("machine.lock")));
    }

    private static int mismatch(byte[] expected, Path file) throws IOException {
        return Arrays.mismatch(expected, Files.readAllBytes(file));
    }
}
