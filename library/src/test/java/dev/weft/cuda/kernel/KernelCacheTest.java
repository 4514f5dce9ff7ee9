package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Where compiled kernels are kept. */
@Isolated("sets a property of the process")
class KernelCacheTest {

    private String before;

    @BeforeEach
    void keepProperty() {
        before = System.clearProperty(KernelCache.CACHE_PROPERTY);
    }

    @AfterEach
    void restoreProperty() {
        if (before == null) {
            System.clearProperty(KernelCache.CACHE_PROPERTY);
        } else {
            System.setProperty(KernelCache.CACHE_PROPERTY, before);
        }
    }

    @Test
    void thePropertyDecides() {
        System.setProperty(KernelCache.CACHE_PROPERTY, "some/folder");
        assertEquals(Path.of("some/folder"), KernelCache.cacheFolder());
    }

    @Test
    void withoutItTheyLieAmongTheUsersCaches() {
        String caches = System.getenv("XDG_CACHE_HOME");
        Path expected =
                caches == null || caches.isBlank()
                        ? Path.of(System.getProperty("user.home"), ".cache", "weft", "kernels")
                        : Path.of(caches, "weft", "kernels");
        assertEquals(expected, KernelCache.cacheFolder());
    }

    private static byte[] kernel(Path folder, int compiled) {
        return KernelCache.cached(folder, "k.cubin", () -> new byte[] {(byte) compiled});
    }

    @Test
    void whatWasCompiledIsKept(@TempDir Path temporary) {
        Path folder = temporary.resolve("weft").resolve("kernels");
        assertArrayEquals(new byte[] {1}, kernel(folder, 1));
        assertArrayEquals(new byte[] {1}, kernel(folder, 2));
    }

    /** What lies there would run on the GPU. */
    @Test
    void aFolderThatOthersCanWriteIsNotUsed(@TempDir Path temporary) throws IOException {
        Path folder = Files.createDirectory(temporary.resolve("kernels"));
        Path planted = Files.write(folder.resolve("k.cubin"), new byte[] {66});
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertArrayEquals(new byte[] {1}, kernel(folder, 1));
        assertArrayEquals(new byte[] {66}, Files.readAllBytes(planted), "nor written to");
    }

    @Test
    void aLinkIsNotFollowed(@TempDir Path temporary) throws IOException {
        Path precious = Files.write(temporary.resolve("precious"), new byte[] {66});
        Path folder = Files.createDirectory(temporary.resolve("kernels"));
        Files.createSymbolicLink(folder.resolve("k.cubin"), precious);
        assertArrayEquals(new byte[] {1}, kernel(folder, 1));
        assertArrayEquals(new byte[] {66}, Files.readAllBytes(precious));
        assertArrayEquals(new byte[] {1}, kernel(folder, 2), "kept in place of the link");
    }
}
