package dev.weft.cli.simulate;

import dev.weft.cli.console.RunFailedException;
import dev.weft.files.PrivateFiles;
import dev.weft.gemm.Gemm;
import dev.weft.process.Fallback;
import dev.weft.sim.Machine;
import dev.weft.sim.MachineFile;
import dev.weft.tensor.DType;
import dev.weft.tune.Calibration;
import dev.weft.tune.Effort;
import dev.weft.tune.HostModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The model of this machine in the user's caches, which auto reads. {@code calibrate} stores it, or
 * the first run that needs it. Thread-safe.
 */
public final class StoredModel {

    private static final long LOOK_MS = 100;

    /** A stored model is worth more time than the two seconds of an undisturbed measurement. */
    private static final Duration MOST = Duration.ofSeconds(6);

    private StoredModel() {}

    /**
     * Measures and stores a model for this engine and type of A, if there is none. One process at a
     * time measures. If it cannot be stored, that is reported as a fallback, and the next run tries
     * again; if other programs used the cores meanwhile, a run after an hour tries again.
     *
     * @param heartbeat called now and then meanwhile
     * @return where it was stored; empty if it was there already, or could not be stored
     */
    public static Optional<Path> storeIfMissing(Gemm gemm, DType aType, Runnable heartbeat) {
        Function<DType, Gemm> engines = HostModel.engines(gemm, aType);
        return storeIfMissing(
                HostModel.path(engines).toAbsolutePath(),
                engines,
                aType,
                () -> {
                    Effort effort = Effort.quick(heartbeat).within(MOST);
                    return HostModel.knowing(
                            aType,
                            HostModel.stored(HostModel.path(engines), engines),
                            () -> Calibration.measure(engines, EnumSet.of(aType), effort));
                },
                heartbeat);
    }

    static Optional<Path> storeIfMissing(
            Path path,
            Function<DType, Gemm> engines,
            DType aType,
            Supplier<Machine> measuring,
            Runnable heartbeat) {
        try {
            Path file = PrivateFiles.cache(path.getParent()).resolve(path.getFileName());
            if (!isMissing(file, engines, aType)) {
                return Optional.empty();
            }
            try (FileChannel lock =
                    FileChannel.open(
                            file.resolveSibling("machine.lock"),
                            StandardOpenOption.CREATE,
                            StandardOpenOption.WRITE,
                            LinkOption.NOFOLLOW_LINKS)) {
                await(lock, heartbeat);
                // The previous holder of the lock may have stored it.
                if (!isMissing(file, engines, aType)) {
                    return Optional.empty();
                }
                Machine machine = measuring.get();
                MachineFile.writeCached(machine, file);
                if (!Calibration.isUndisturbed(machine)) {
                    Fallback.report(
                            "a machine model for an hour at most",
                            "other programs used the cores while it was measured; ./weft calibrate"
                                    + " measures again");
                }
                return Optional.of(file);
            }
        } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
            Fallback.report(
                    "a machine model that is measured by every process",
                    e.getMessage() + "; or set XDG_CACHE_HOME to a folder that only you can write");
            return Optional.empty();
        }
    }

    private static boolean isMissing(Path file, Function<DType, Gemm> engines, DType aType) {
        Machine stored = HostModel.stored(file, engines);
        return stored == null || !stored.engine().knows(aType);
    }

    /** Others hold the lock for a few seconds at most. */
    private static void await(FileChannel lock, Runnable heartbeat) throws IOException {
        while (!isHeld(lock)) {
            RunFailedException.sleep(LOOK_MS);
            heartbeat.run();
        }
    }

    private static boolean isHeld(FileChannel lock) throws IOException {
        try {
            return lock.tryLock() != null;
        } catch (OverlappingFileLockException e) {
            // Another thread of this process holds it.
            return false;
        }
    }
}
