package dev.weft.ffi;

import static dev.weft.ffi.NativeFunction.hex;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.weft.ffi.MpiFamily.Handle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;

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
        MpiThreadLevel provided;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            int code = MpiCalls.INIT_THREAD.call(0, 0, required.ordinal(), out.address());
            MpiCalls.INIT_THREAD.check(code, required.toString());
            provided = threadLevel(out.get(JAVA_INT, 0));
        }
        // Failures that belong to no communicator are raised on one of these two, depending on
        // MPI's version.
        returnErrors(world);
        returnErrors(library.handle(Handle.SELF));
        return provided;
    }

    /** Whether MPI has been initialised, now or earlier. */
    public boolean initialized() {
        return ask(MpiCalls.INITIALIZED) != 0;
    }

    public boolean finalized() {
        return ask(MpiCalls.FINALIZED) != 0;
    }

    public MpiThreadLevel queryThread() {
        return threadLevel(ask(MpiCalls.QUERY_THREAD));
    }

    /** MPI_Finalize: waits for all ranks, and no call may follow. */
    public void finish() {
        MpiCalls.FINALIZE.check(MpiCalls.FINALIZE.call(), "");
    }

    /** The communicator of all processes that were started together. */
    public long world() {
        return world;
    }

    public int rank(long comm) {
        return ask(MpiCalls.RANK, comm);
    }

    public int size(long comm) {
        return ask(MpiCalls.SIZE, comm);
    }

    /** The same processes with separate messages, until {@link #free}. All of them call it. */
    public long duplicate(long comm) {
        return create(
                MpiCalls.DUPLICATE,
                out -> MpiCalls.DUPLICATE.call(comm, out.address()),
                () -> comm(comm));
    }

    /**
     * The processes of the communicator on this host, ranked by key, until {@link #free}. All
     * processes of the communicator call it.
     */
    public long splitByHost(long comm, int key) {
        int shared = family().commTypeShared();
        long noHints = library.handle(Handle.INFO_NULL);
        return create(
                MpiCalls.SPLIT_TYPE,
                out -> MpiCalls.SPLIT_TYPE.call(comm, shared, key, noHints, out.address()),
                () -> comm(comm) + ", shared memory, key " + key);
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
        MpiCalls.BARRIER.run("comm %#x", comm);
    }

    public void bcast(long address, int count, long type, int root, long comm) {
        int code = MpiCalls.BROADCAST.call(address, count, type, root, comm);
        if (code != 0) {
            throw MpiCalls.BROADCAST.failed(
                    code, buffer(address, count, type) + ", root " + root + ", " + comm(comm));
        }
    }

    /** Gathers the same number of bytes from every rank, in rank order. */
    public void allgather(long sendAddress, int bytes, long receiveAddress, long comm) {
        int code =
                MpiCalls.ALLGATHER.call(
                        sendAddress, bytes, byteType, receiveAddress, bytes, byteType, comm);
        if (code != 0) {
            throw MpiCalls.ALLGATHER.failed(
                    code,
                    "%s bytes from %s to %s, %s"
                            .formatted(bytes, hex(sendAddress), hex(receiveAddress), comm(comm)));
        }
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
        int code =
                MpiCalls.ALLGATHERV.call(
                        sendAddress,
                        sendCount,
                        sendType,
                        receiveAddress,
                        countsAddress,
                        displacementsAddress,
                        receiveType,
                        comm);
        if (code != 0) {
            throw MpiCalls.ALLGATHERV.failed(
                    code,
                    buffer(sendAddress, sendCount, sendType)
                            + " to "
                            + hex(receiveAddress)
                            + ", "
                            + comm(comm));
        }
    }

    /** The type of one byte. */
    public long byteType() {
        return byteType;
    }

    /** A type of contiguous bytes as one element, until {@link #freeType}. */
    public long contiguousType(int bytes) {
        return committed(
                create(
                        MpiCalls.CREATE_CONTIGUOUS,
                        out -> MpiCalls.CREATE_CONTIGUOUS.call(bytes, byteType, out.address()),
                        () -> bytes + " bytes"));
    }

    /**
     * Rows at a pitch as one element, until {@link #freeType}; its extent ends with the last row.
     */
    public long hvectorType(int rows, int rowBytes, long pitchBytes) {
        return committed(
                create(
                        MpiCalls.CREATE_HVECTOR,
                        out ->
                                MpiCalls.CREATE_HVECTOR.call(
                                        rows, rowBytes, pitchBytes, byteType, out.address()),
                        () -> rows + " rows of " + rowBytes + " bytes, pitch " + pitchBytes));
    }

    /** MPI keeps the type for as long as a transfer that has begun needs it. */
    public void freeType(long type) {
        withHandle(MpiCalls.FREE_TYPE, type, "type");
    }

    /** Requests for {@code capacity} transfers at once. */
    public MpiRequests requests(int capacity) {
        return new MpiRequests(family(), library.handle(Handle.REQUEST_NULL), byteType, capacity);
    }

    static String comm(long comm) {
        return "comm " + hex(comm);
    }

    static String buffer(long address, int count, long type) {
        return count + " of type " + hex(type) + " at " + hex(address);
    }

    private MpiThreadLevel threadLevel(int code) {
        if (code < 0 || code >= MpiThreadLevel.values().length) {
            throw new IllegalStateException(
                    "%s grants thread level %s, which Weft does not know"
                            .formatted(family().label(), code));
        }
        return MpiThreadLevel.values()[code];
    }

    private static int ask(NativeFunction function) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            function.run("", out.address());
            return out.get(JAVA_INT, 0);
        }
    }

    private static int ask(NativeFunction function, long comm) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            function.run("comm %#x", comm, out.address());
            return out.get(JAVA_INT, 0);
        }
    }

    private long create(
            NativeFunction function,
            ToIntFunction<MemorySegment> creation,
            Supplier<String> arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int code = creation.applyAsInt(out);
            if (code != 0) {
                throw function.failed(code, arguments.get());
            }
            return family().readHandle(out, 0);
        }
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
