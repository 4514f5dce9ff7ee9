package dev.weft.ffi;

import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.weft.ffi.MpiFamily.Handle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Optional;

/**
 * The process's MPI library, Open MPI or MPICH: loaded once, when first asked for. Handles
 * (communicators, types) and addresses are passed as longs; the caller keeps memory given by
 * address mapped for as long as MPI may use it. A call that fails throws {@link
 * NativeCallException}.
 *
 * <p>One thread calls, the one that has initialised MPI, unless {@link #initThread} has given
 * {@link MpiThreadLevel#MULTIPLE}; {@link #initialized}, {@link #finalized} and methods about the
 * library itself are for any thread.
 */
public final class Mpi {

    private static final Mpi LOADED =
            MpiCalls.BOUND.unavailable().isEmpty() ? new Mpi(MpiCalls.library()) : null;

    private static final String COMM = "comm %#x";

    private final MpiLibrary library;
    private final long world;
    private final long byteType;

    private Mpi(MpiLibrary library) {
        this.library = library;
        this.world = library.handle(Handle.WORLD);
        this.byteType = library.handle(Handle.BYTE);
    }

    /**
     * Loads the library that -Dweft.mpi.library or WEFT_MPI_LIBRARY names, else that of the
     * launcher that started this process, else any that is installed.
     *
     * @throws IllegalStateException with one line that says why there is none and how to get one
     */
    public static Mpi load() {
        if (LOADED == null) {
            throw new IllegalStateException("MPI: " + unavailable().orElseThrow());
        }
        return LOADED;
    }

    /** Why MPI cannot be used here and how to get it, or empty if it can be used. */
    public static Optional<String> unavailable() {
        return MpiCalls.BOUND.unavailable();
    }

    public MpiFamily family() {
        return library.family();
    }

    /** The first line of the library's version text. */
    public String libraryVersion() {
        return library.version();
    }

    /** The library's text for a code, on one line. */
    public String errorText(int code) {
        return MpiCalls.errorText(code);
    }

    /**
     * Initialises MPI for this process, once; from then on failures are returned, instead of ending
     * the process as MPI does by default.
     *
     * @return the level that the library grants, which may be lower than the required one
     */
    public MpiThreadLevel initThread(MpiThreadLevel required) {
        int provided = number(MpiCalls.INIT_THREAD, "level %3$d", 0, 0, required.ordinal());
        // Failures that belong to no communicator are raised on one of these two, depending on
        // MPI's version.
        returnErrors(world);
        returnErrors(library.handle(Handle.SELF));
        return threadLevel(provided);
    }

    /** Whether MPI has been initialised, now or earlier. */
    public boolean initialized() {
        return number(MpiCalls.INITIALIZED, "") != 0;
    }

    public boolean finalized() {
        return number(MpiCalls.FINALIZED, "") != 0;
    }

    public MpiThreadLevel queryThread() {
        return threadLevel(number(MpiCalls.QUERY_THREAD, ""));
    }

    /** MPI_Finalize: waits for all ranks, and no call may follow. */
    public void finish() {
        MpiCalls.FINALIZE.runRarely("");
    }

    /** The communicator of all processes that were started together. */
    public long world() {
        return world;
    }

    public int rank(long comm) {
        return number(MpiCalls.RANK, COMM, comm);
    }

    public int size(long comm) {
        return number(MpiCalls.SIZE, COMM, comm);
    }

    /** The same processes with separate messages, until {@link #free}. All of them call it. */
    public long duplicate(long comm) {
        return create(MpiCalls.DUPLICATE, COMM, comm);
    }

    /**
     * The processes of the communicator on this host, ranked by key, until {@link #free}. All
     * processes of the communicator call it.
     */
    public long splitByHost(long comm, int key) {
        int shared = family().commTypeShared();
        long noHints = library.handle(Handle.INFO_NULL);
        String arguments = "comm %#x, shared memory %d, key %d";
        return create(MpiCalls.SPLIT_TYPE, arguments, comm, shared, key, noHints);
    }

    /** Frees a communicator that this class has made. All of its processes call it. */
    public void free(long comm) {
        withHandle(MpiCalls.FREE_COMM, comm, "comm");
    }

    /** Lets failures on this communicator be returned, instead of ending the process. */
    public void returnErrors(long comm) {
        long handler = library.handle(Handle.ERRORS_RETURN);
        MpiCalls.SET_ERROR_HANDLER.run("comm %#x, errors return", comm, handler);
    }

    public void barrier(long comm) {
        MpiCalls.BARRIER.run(COMM, comm);
    }

    public void bcast(long address, int count, long type, int root, long comm) {
        String arguments = "%2$d of type %3$#x at %1$#x, root %4$d, comm %5$#x";
        MpiCalls.BROADCAST.runRarely(arguments, address, count, type, root, comm);
    }

    /** Gathers the same number of bytes from every rank, in rank order. */
    public void allgather(long sendAddress, int bytes, long receiveAddress, long comm) {
        MpiCalls.ALLGATHER.runRarely(
                "%2$d bytes from %1$#x to %4$#x, comm %7$#x",
                sendAddress, bytes, byteType, receiveAddress, bytes, byteType, comm);
    }

    /**
     * Gathers what every rank sends, at places that the receiver chooses.
     *
     * @param countsAddress 32-bit numbers: how many elements come from each rank
     * @param displacementsAddress 32-bit numbers: where they go, in extents of the receive type
     */
    public void allgatherv(
            long sendAddress,
            int sendCount,
            long sendType,
            long receiveAddress,
            long countsAddress,
            long displacementsAddress,
            long receiveType,
            long comm) {
        MpiCalls.ALLGATHERV.runRarely(
                "%2$d of type %3$#x at %1$#x to %4$#x, comm %8$#x",
                sendAddress,
                sendCount,
                sendType,
                receiveAddress,
                countsAddress,
                displacementsAddress,
                receiveType,
                comm);
    }

    /** The type of one byte. */
    public long byteType() {
        return byteType;
    }

    /** A type of contiguous bytes as one element, until {@link #freeType}. */
    public long contiguousType(int bytes) {
        return committed(create(MpiCalls.CREATE_CONTIGUOUS, "%d bytes", bytes, byteType));
    }

    /**
     * Rows at a pitch as one element, until {@link #freeType}; its extent ends with the last row.
     */
    public long hvectorType(int rows, int rowBytes, long pitchBytes) {
        String arguments = "%d rows of %d bytes, pitch %d";
        return committed(
                create(MpiCalls.CREATE_HVECTOR, arguments, rows, rowBytes, pitchBytes, byteType));
    }

    /** MPI keeps the type for as long as a transfer that has begun needs it. */
    public void freeType(long type) {
        withHandle(MpiCalls.FREE_TYPE, type, "type");
    }

    /** Requests for {@code capacity} transfers at once. */
    public MpiRequests requests(int capacity) {
        return new MpiRequests(family(), library.handle(Handle.REQUEST_NULL), byteType, capacity);
    }

    private MpiThreadLevel threadLevel(int code) {
        if (code < 0 || code >= MpiThreadLevel.values().length) {
            throw new IllegalStateException(
                    "%s grants thread level %s, which Weft does not know"
                            .formatted(family().label(), code));
        }
        return MpiThreadLevel.values()[code];
    }

    /** What a function writes to the memory that its last argument points to, an int. */
    private static int number(NativeFunction function, String arguments, long... before) {
        try (Arena arena = Arena.ofConfined()) {
            return result(function, arguments, before, arena).get(JAVA_INT, 0);
        }
    }

    /** Likewise, a handle. */
    private long create(NativeFunction function, String arguments, long... before) {
        try (Arena arena = Arena.ofConfined()) {
            return family().readHandle(result(function, arguments, before, arena), 0);
        }
    }

    private static MemorySegment result(
            NativeFunction function, String arguments, long[] before, Arena arena) {
        MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
        long[] all = Arrays.copyOf(before, before.length + 1);
        all[before.length] = out.address();
        function.runRarely(arguments, all);
        return out;
    }

    private long committed(long type) {
        withHandle(MpiCalls.COMMIT_TYPE, type, "type");
        return type;
    }

    /** For functions that expect the address of a handle, which they may change. */
    private void withHandle(NativeFunction function, long handle, String kind) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment inOut = arena.allocate(Long.BYTES, Long.BYTES);
            family().writeHandle(inOut, 0, handle);
            function.check(function.call(inOut.address()), kind + " " + hex(handle));
        }
    }
}
