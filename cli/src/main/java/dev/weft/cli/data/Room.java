package dev.weft.cli.data;

import com.sun.management.OperatingSystemMXBean;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.UsageException;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.report.Text;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Whether this host has the memory and the disk space that a problem needs. What it needs is
 * counted low and what there is counted high, so that nothing is refused that fits.
 */
public final class Room {

    private static final Path MEMORY = Path.of("/proc/meminfo");
    private static final Pattern LEFT =
            Pattern.compile("^(?:MemAvailable|SwapFree): +([0-9]{1,15}) kB$", Pattern.MULTILINE);

    /** Less is not worth a line. */
    private static final double WORTH_TELLING = 0x1p30;

    private Room() {}

    /**
     * Bytes that a problem needs at least.
     *
     * @param memory of this host, shared memory among it
     * @param folder in the data folder
     * @param shared of the memory that processes share
     */
    public record Need(double memory, double folder, double shared) {

        /**
         * Refuses what does not fit; says what a large problem needs.
         *
         * @param replaced bytes of files in the folder that will be deleted before
         */
        public void check(Path dataFolder, long replaced, Console console) throws IOException {
            checkMemory(memory);
            double free = free(dataFolder) + replaced;
            if (folder > free) {
                throw new UsageException(
                        "--data-dir %s: the problem needs %s there, %s are free: expected a smaller"
                                + " problem, or a folder on another disk",
                        dataFolder, Text.bytes(folder), Text.bytes(free));
            }
            Path shm = ShmJob.sharedMemory();
            if (shared > 0 && shared > free(shm)) {
                throw new UsageException(
                        "--launcher processes: the problem needs at least %s of shared memory, %s"
                                + " are free in %s: expected a smaller problem, --launcher threads,"
                                + " or another folder in WEFT_SHM_DIR",
                        Text.bytes(shared), Text.bytes(free(shm)), shm);
            }
            if (Math.max(memory, folder) >= WORTH_TELLING) {
                console.info(
                        "Needs at least %s of memory, and %s in %s",
                        Text.bytes(memory), Text.bytes(folder), dataFolder);
            }
        }
    }

    /** Refuses a problem that needs at least so many bytes of memory if there are fewer. */
    public static void checkMemory(double bytes) throws IOException {
        long left = memory();
        if (bytes > left) {
            throw new UsageException(
                    "the problem needs at least %s of memory, this host has %s left: expected a"
                            + " smaller problem",
                    Text.bytes(bytes), Text.bytes(left));
        }
    }

    /** What the system can free, with swap; at most what a container may have. */
    static long memory() throws IOException {
        long most =
                ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                        .getTotalMemorySize();
        if (!Files.isReadable(MEMORY)) {
            return most;
        }
        long left = 0;
        Matcher lines = LEFT.matcher(Files.readString(MEMORY));
        while (lines.find()) {
            left += 1024 * Long.parseLong(lines.group(1));
        }
        return left == 0 ? most : Math.min(most, left);
    }

    /**
     * Free bytes where a folder is, or where it would be made; infinite if the system says none.
     */
    private static double free(Path folder) {
        Path there = folder.toAbsolutePath();
        while (!Files.exists(there) && there.getParent() != null) {
            there = there.getParent();
        }
        // Not a FileStore, which some containers' mounts have none of. Some file systems say 0.
        long free = there.toFile().getUsableSpace();
        return free == 0 ? Double.POSITIVE_INFINITY : free;
    }
}
