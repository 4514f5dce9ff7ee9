package dev.weft.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Where compiled kernels are kept. */
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
}
