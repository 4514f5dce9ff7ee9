package dev.weft.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The system in which a process's number means that process. */
public final class PidNamespace {

    private PidNamespace() {}

    /** The same for processes that see each other by number; empty where it is not known. */
    public static String current() {
        try {
            // A container has processes of its own on a kernel that it shares.
            return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip()
                    + Files.readSymbolicLink(Path.of("/proc/self/ns/pid"));
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no /proc", e);
            return "";
        }
    }

    /** The name of this host; empty where it is not known. */
    public static String host() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no host name", e);
            return "";
        }
    }
}
