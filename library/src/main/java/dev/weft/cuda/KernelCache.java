package dev.weft.cuda;

import dev.weft.ffi.CudaDevices;
import dev.weft.ffi.CudaModules;
import dev.weft.ffi.Nvrtc;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Kernels, compiled for the card at hand when they are first used: a ready one from the folder that
 * {@code dist} has filled, else one from the cache on disk, else by NVRTC, which fills the cache.
 * Each is loaded once per process and stays. Any thread with a bound GPU may call.
 */
final class KernelCache {

    /** Ready kernels, named by {@link KernelKey#digest}. */
    static final String READY_PROPERTY = "weft.cuda.kernels";

    /** The cache on disk; by default {@code weft/kernels} where the user's caches are. */
    static final String CACHE_PROPERTY = "weft.cuda.cache";

    private static final Map<String, Long> LOADED = new HashMap<>();

    private KernelCache() {}

    /** The function {@code name} of a kernel, compiled and loaded. */
    static synchronized long function(Gpu gpu, KernelKey key, String name) {
        String digest = key.digest(sources());
        Long module = LOADED.get(gpu.ordinal() + digest);
        if (module == null) {
            module = CudaModules.loadData(MemorySegment.ofArray(image(key, digest)));
            LOADED.put(gpu.ordinal() + digest, module);
        }
        return CudaModules.function(module, name);
    }

    private static Map<String, String> sources() {
        try {
            return KernelSources.read();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static byte[] image(KernelKey key, String digest) {
        try {
            String ready = System.getProperty(READY_PROPERTY);
            if (ready != null && Files.isRegularFile(Path.of(ready, digest + ".cubin"))) {
                return Files.readAllBytes(Path.of(ready, digest + ".cubin"));
            }
            // A new driver may bring a new compiler: what the old one made is not used again.
            Path cached =
                    cacheFolder().resolve(digest + "-" + CudaDevices.driverVersion() + ".cubin");
            if (Files.isRegularFile(cached)) {
                return Files.readAllBytes(cached);
            }
            byte[] image = compile(key);
            store(cached, image);
            return image;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Where compiled kernels are kept. */
    static Path cacheFolder() {
        String chosen = System.getProperty(CACHE_PROPERTY);
        if (chosen != null) {
            return Path.of(chosen);
        }
        String caches = System.getenv("XDG_CACHE_HOME");
        Path base =
                caches != null && !caches.isBlank()
                        ? Path.of(caches)
                        : Path.of(System.getProperty("user.home"), ".cache");
        return base.resolve("weft").resolve("kernels");
    }

    private static byte[] compile(KernelKey key) {
        Nvrtc.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalStateException(
                                    "no ready kernel "
                                            + key.source()
                                            + " for "
                                            + key.architecture()
                                            + ", and none can be compiled: "
                                            + why);
                        });
        Map<String, String> headers = new TreeMap<>(sources());
        String text = headers.remove(key.source());
        List<String> options = new ArrayList<>();
        options.add("--gpu-architecture=" + key.architecture());
        options.add("--std=c++17");
        options.addAll(key.options());
        return Nvrtc.compile(key.source(), text, headers, options);
    }

    /** A cache that cannot be written costs time at the next start, nothing else. */
    private static void store(Path file, byte[] image) {
        try {
            Files.createDirectories(file.getParent());
            // Whole or absent: another process may look for it at this moment.
            Path part = Files.createTempFile(file.getParent(), "kernel", ".part");
            try {
                Files.write(part, image);
                Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(part);
            }
        } catch (IOException e) {
            System.getLogger("dev.weft")
                    .log(
                            Level.INFO,
                            "compiled kernels are not kept: {0}: {1}",
                            file,
                            e.getMessage());
        }
    }
}
