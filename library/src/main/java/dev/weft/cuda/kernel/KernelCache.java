package dev.weft.cuda.kernel;

import dev.weft.cuda.Gpu;
import dev.weft.ffi.CudaDevices;
import dev.weft.ffi.CudaModules;
import dev.weft.ffi.Nvrtc;
import dev.weft.files.PrivateFiles;
import dev.weft.process.Fallback;
import dev.weft.sim.Machines;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * Kernels, compiled for the card at hand when they are first used: a ready one from the folder that
 * {@code dist} has filled, else one from the cache on disk, else by NVRTC, which fills the cache.
 * Each is loaded once per process and stays. Any thread with a bound GPU may call.
 */
public final class KernelCache {

    /** Ready kernels, named by {@link KernelKey#digest}. */
    public static final String READY_PROPERTY = "weft.cuda.kernels";

    /** The cache on disk; by default {@code weft/kernels} in the user's cache folder. */
    public static final String CACHE_PROPERTY = "weft.cuda.cache";

    private static final Map<String, Long> LOADED = new HashMap<>();

    private KernelCache() {}

    /** The function {@code name} of a kernel, compiled and loaded. */
    public static synchronized long function(Gpu gpu, KernelKey key, String name) {
        String digest = key.digest(KernelVariants.sources());
        Long module = LOADED.get(gpu.ordinal() + digest);
        if (module == null) {
            module = CudaModules.loadData(MemorySegment.ofArray(image(key, digest)));
            LOADED.put(gpu.ordinal() + digest, module);
        }
        return CudaModules.function(module, name);
    }

    private static byte[] image(KernelKey key, String digest) {
        try {
            String ready = System.getProperty(READY_PROPERTY);
            if (ready != null && Files.isRegularFile(Path.of(ready, digest + ".cubin"))) {
                return Files.readAllBytes(Path.of(ready, digest + ".cubin"));
            }
            // A new driver may bring a new compiler: what the old one made is not used again.
            String name = digest + "-" + CudaDevices.driverVersion() + ".cubin";
            return cached(cacheFolder(), name, () -> compile(key));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * What is kept under this name, or else what is compiled now, and kept. A folder that others
     * can write is not used: what it holds would run on the GPU.
     */
    public static byte[] cached(Path folder, String name, Supplier<byte[]> compiled) {
        Path file;
        try {
            file = PrivateFiles.cache(folder).resolve(name);
        } catch (IOException e) {
            Fallback.report(
                    "kernels that are compiled by every process",
                    e.getMessage() + "; or set XDG_CACHE_HOME to a folder that only you can write");
            return compiled.get();
        }
        if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            try {
                return PrivateFiles.read(file, Integer.MAX_VALUE);
            } catch (IOException e) {
                Fallback.report("a kernel that is compiled anew", e.getMessage());
            }
        }
        byte[] image = compiled.get();
        store(file, image);
        return image;
    }

    /** The folder of compiled kernels. */
    public static Path cacheFolder() {
        String chosen = System.getProperty(CACHE_PROPERTY);
        return chosen == null ? Machines.hereFolder().resolve("kernels") : Path.of(chosen);
    }

    private static byte[] compile(KernelKey key) {
        Nvrtc.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalStateException(
                                    "no ready kernel %s for %s, and none can be compiled: %s"
                                            .formatted(key.source(), key.architecture(), why));
                        });
        Map<String, String> headers = new TreeMap<>(KernelVariants.sources());
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
            PrivateFiles.write(file, image);
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
