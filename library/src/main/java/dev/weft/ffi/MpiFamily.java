package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The kinds of MPI library that Weft can call, and the table of what their headers define
 * differently: one row per method, one column per family. Another binary interface (the standard
 * one of MPI 5) would be another column. Thread-safe.
 */
public enum MpiFamily {
    /** Versions 4 and 5. Handles are pointers, the predefined ones addresses of variables. */
    OPEN_MPI("Open MPI", "Open MPI v(\\d+)\\.", 4, 5, List.of("libmpi.so.40")),

    /** Version 4. Handles are 32-bit numbers, the predefined ones constants. */
    MPICH("MPICH", "MPICH Version: (\\d+)\\.", 4, 4, List.of("libmpich.so.12", "libmpi.so.12"));

    private final String label;
    private final Pattern version;
    private final int oldest;
    private final int newest;
    private final List<String> files;

    MpiFamily(String label, String version, int oldest, int newest, List<String> files) {
        this.label = label;
        this.version = Pattern.compile(version);
        this.oldest = oldest;
        this.newest = newest;
        this.files = files;
    }

    /** The usual name, for example {@code Open MPI}. */
    public String label() {
        return label;
    }

    /** What Weft can call, for example {@code Open MPI 4 to 5}. */
    String supported() {
        return label + " " + oldest + (newest == oldest ? "" : " to " + newest);
    }

    /** Names of its library, the preferred one first. */
    List<String> files() {
        return files;
    }

    /** Whether the library's version text names a version of this family that Weft can call. */
    boolean isNamedBy(String versionText) {
        var match = version.matcher(versionText);
        if (!match.lookingAt()) {
            return false;
        }
        int major = Integer.parseInt(match.group(1));
        return oldest <= major && major <= newest;
    }

    /** Whether the library exports what this table relies on. */
    boolean isBoundBy(SymbolLookup symbols) {
        return symbols.find("ompi_mpi_comm_world").isPresent() == (this == OPEN_MPI);
    }

    MemoryLayout handleLayout() {
        return this == OPEN_MPI ? JAVA_LONG : JAVA_INT;
    }

    long readHandle(MemorySegment memory, long offset) {
        return this == OPEN_MPI
                ? memory.get(JAVA_LONG, offset)
                : Integer.toUnsignedLong(memory.get(JAVA_INT, offset));
    }

    void writeHandle(MemorySegment memory, long offset, long handle) {
        if (this == OPEN_MPI) {
            memory.set(JAVA_LONG, offset, handle);
        } else {
            memory.set(JAVA_INT, offset, (int) handle);
        }
    }

    /** Predefined handles: the variable at whose address Open MPI has it, and MPICH's number. */
    enum Handle {
        WORLD("ompi_mpi_comm_world", 0x44000000),
        SELF("ompi_mpi_comm_self", 0x44000001),
        BYTE("ompi_mpi_byte", 0x4c00010d),
        ERRORS_RETURN("ompi_mpi_errors_return", 0x54000001),
        REQUEST_NULL("ompi_request_null", 0x2c000000),
        INFO_NULL("ompi_mpi_info_null", 0x1c000000);

        private final String openMpi;
        private final int mpich;

        Handle(String openMpi, int mpich) {
            this.openMpi = openMpi;
            this.mpich = mpich;
        }
    }

    long handle(Handle which, SymbolLookup symbols) {
        return this == OPEN_MPI ? symbols.findOrThrow(which.openMpi).address() : which.mpich;
    }

    int undefined() {
        return choose(-32766, -32766);
    }

    int commTypeShared() {
        return choose(0, 1);
    }

    /** The class of the code that refers to the statuses for the codes. */
    int errorInStatus() {
        return choose(18, 17);
    }

    int statusBytes() {
        return choose(24, 20);
    }

    int statusErrorOffset() {
        return choose(8, 16);
    }

    private int choose(int openMpi, int mpich) {
        return this == OPEN_MPI ? openMpi : mpich;
    }
}
