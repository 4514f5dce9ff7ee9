package dev.weft.process;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The namespace of this process's id: where the id identifies this process. */
public final class PidNamespace {

    private PidNamespace() {}

    /** A text that is equal for processes in the same namespace; empty if unknown. */
    public static String current() {
        try {
            // Containers share a kernel, but have their own process ids.
            return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip()
                    + Files.readSymbolicLink(Path.of("/proc/self/ns/pid"));
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no /proc", e);
            return "";
        }
    }

    /** The name of this host; empty if unknown. */
    public static String host() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no host name", e);
            return "";
        }
    }
}
