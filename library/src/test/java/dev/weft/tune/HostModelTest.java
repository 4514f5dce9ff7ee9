package dev.weft.tune;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.weft.fabric.ChildJvm;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A stored model is read, unless others could have written it; nothing is ever written. */
class HostModelTest {

    private static final Machine MODEL = Machines.named("cpu-1gbe");

    @TempDir Path temporary;

    private Path file() {
        return temporary.resolve("weft").resolve("machine.json");
    }

    private Machine stored() {
        return HostModel.stored(file(), MODEL.description());
    }

    @Test
    void aStoredModelIsReadAndWhatItLacksIsMeasured() {
        assertNull(stored());
        MachineFile.writeCached(MODEL, file());
        assertEquals(MODEL, stored());
        assertNull(HostModel.stored(file(), "another engine"));
        assertSame(MODEL, HostModel.knowing(DType.FP32, MODEL, () -> fail("measured")));
        assertSame(MODEL, HostModel.knowing(DType.FP32, null, () -> MODEL));
    }

    /** Its target may be any file. */
    @Test
    void aLinkInPlaceOfTheFileIsNotFollowed() throws IOException {
        Path elsewhere = temporary.resolve("elsewhere.json");
        MachineFile.write(MODEL, elsewhere);
        Files.createDirectory(file().getParent());
        Files.createSymbolicLink(file(), elsewhere);
        assertNull(stored());
    }

    @Test
    void aFolderThatOthersCanWriteIsNotBelieved() throws IOException {
        Path folder = file().getParent();
        MachineFile.writeCached(MODEL, file());
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertNull(stored());
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwxrwx---"));
        assertNull(stored(), "others could replace the folder");
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwx------"));
        assertEquals(MODEL, stored());
    }

    @Test
    void toPrepareAnOperatorWritesNothing() throws IOException {
        Map<String, String> environment =
                Map.of("XDG_CACHE_HOME", temporary.toString(), "HOME", temporary.toString());
        try (ChildJvm child = ChildJvm.start(PreparingChild.class, environment)) {
            String chosen = child.awaitLine("chosen of ");
            assertTrue(Integer.parseInt(chosen) > 1, chosen);
            assertEquals(0, child.exitCode());
        }
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(0, left.count());
        }
        assertFalse(Files.exists(file().getParent()));
    }
}
