package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Linker;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MpiLoadTest {

    private static String refusal(String given) {
        var e =
                assertThrows(
                        IllegalArgumentException.class, () -> MpiLibrary.load(given, Map.of()));
        return e.getMessage();
    }

    @Test
    void aLibraryThatIsNoMpiIsRefusedByName() {
        assertEquals(
                "libc.so.6 is no MPI library, expected Open MPI 4 to 5 or MPICH 4",
                refusal("libc.so.6"));
    }

    @Test
    void aFileThatIsMissingIsRefusedByName(@TempDir Path folder) {
        Path missing = folder.resolve("libmpi.so.40");
        assertEquals(missing + ": no such file", refusal(missing.toString()));
        assertEquals(
                "libweft-none.so.1 does not load, expected Open MPI 4 to 5 or MPICH 4",
                refusal("libweft-none.so.1"));
    }

    @Test
    void familiesAreToldByTheFirstLineOfTheirVersionText() {
        String openMpi = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";
        assertTrue(MpiFamily.OPEN_MPI.isNamedBy(openMpi));
        assertTrue(MpiFamily.OPEN_MPI.isNamedBy("Open MPI v5.0.7rc2, package: x"));
        assertFalse(MpiFamily.MPICH.isNamedBy(openMpi));
        String mpich = MpiLibrary.firstLine("MPICH Version:      \t4.0.2\nMPICH Release date:\tx");
        assertEquals("MPICH Version: 4.0.2", mpich);
        assertTrue(MpiFamily.MPICH.isNamedBy(mpich));
        assertFalse(MpiFamily.OPEN_MPI.isNamedBy(mpich));
    }

    @Test
    void otherLibrariesAndOtherVersionsAreNoFamilys() {
        List<String> others =
                List.of(
                        "Open MPI v3.1.6, package: x",
                        "Open MPI v6.0.0, package: x",
                        "MPICH Version: 3.4.3",
                        "MPICH Version: 5.0.0",
                        "Intel(R) MPI Library 2021.8 for Linux* OS",
                        "MVAPICH2 Version : 2.3.7",
                        "MVAPICH Version: 3.0",
                        "MPI VERSION : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)",
                        "");
        for (String text : others) {
            assertFalse(MpiFamily.OPEN_MPI.isNamedBy(text), text);
            assertFalse(MpiFamily.MPICH.isNamedBy(text), text);
        }
    }

    @Test
    void aFamilyIsAlsoToldByItsSymbols() {
        var withoutMpi = Linker.nativeLinker().defaultLookup();
        assertFalse(MpiFamily.OPEN_MPI.isBoundBy(withoutMpi));
        assertTrue(MpiFamily.MPICH.isBoundBy(withoutMpi));
    }

    @Test
    void theUsersFoldersComeFirst() {
        List<Path> folders = MpiLibrary.folders(Map.of("MPI_HOME", "/a", "OPAL_PREFIX", "/b"));
        assertEquals(List.of(Path.of("/a/lib"), Path.of("/b/lib")), folders.subList(0, 2));
        assertTrue(folders.contains(Path.of("/usr/lib64/mpich/lib")), folders.toString());
    }
}
