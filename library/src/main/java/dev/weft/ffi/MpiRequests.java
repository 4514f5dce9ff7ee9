package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * An array of MPI requests, each with its index, that MPI tests as a whole. Calls allocate nothing
 * on the Java heap unless they fail. For one thread at a time, the one that may call {@link Mpi}.
 * Closing frees the array and ends no transfer.
 */
public final class MpiRequests implements AutoCloseable {

    private final MpiFamily family;
    private final long none;
    private final long byteType;
    private final int capacity;
    private final Arena arena = Arena.ofShared();

    /** One handle per request; {@code none} for a free one. */
    private final MemorySegment handles;

    private final long handleBytes;

    /** What the latest test has found: how many requests, which ones, and a status for each. */
    private final MemorySegment completedCount;

    private final MemorySegment completedIndices;
    private final MemorySegment statuses;

    private final MemorySegment scratch;
    private int completed;
    private boolean errorsInStatuses;

    MpiRequests(MpiFamily family, long none, long byteType, int capacity) {
        if (capacity < 1) {
            throw new IllegalArgumentException(
                    "room for " + capacity + " transfers: expected at least 1");
        }
        this.family = family;
        this.none = none;
        this.byteType = byteType;
        this.capacity = capacity;
        this.handleBytes = family.handleLayout().byteSize();
        this.handles = arena.allocate(capacity * handleBytes, Long.BYTES);
        this.completedCount = arena.allocate(JAVA_INT);
        this.completedIndices = arena.allocate(JAVA_INT, capacity);
        this.statuses = arena.allocate((long) capacity * family.statusBytes(), Long.BYTES);
        this.scratch = arena.allocate(JAVA_LONG);
        for (int request = 0; request < capacity; request++) {
            clear(request);
        }
    }

    /** Whether no transfer is under way with the request. */
    public boolean isFree(int request) {
        return family.readHandle(handles, offset(request)) == none;
    }

    /** Starts to send from memory that must not change until the request completes. */
    public void isend(
            int request, long address, int count, long type, int destination, int tag, long comm) {
        begin(MpiCalls.ISEND, request, address, count, type, destination, tag, comm);
    }

    /** Starts to receive into memory that must not be read until the request completes. */
    public void irecv(
            int request, long address, int count, long type, int source, int tag, long comm) {
        begin(MpiCalls.IRECV, request, address, count, type, source, tag, comm);
    }

    private void begin(
            NativeFunction function,
            int request,
            long address,
            int count,
            long type,
            int peer,
            int tag,
            long comm) {
        if (!isFree(request)) {
            throw new IllegalArgumentException(
                    "request " + request + " has a transfer under way: expected a free one");
        }
        long handle = handles.address() + offset(request);
        int code = function.call(address, count, type, peer, tag, comm, handle);
        if (code != 0) {
            clear(request);
            throw function.failed(
                    code,
                    "%d of type %#x at %#x, peer %d, tag %d, comm %#x"
                            .formatted(count, type, address, peer, tag, comm));
        }
    }

    /**
     * Makes progress and returns how many transfers have completed since the last call; their
     * requests are free again. A transfer that has failed counts too: see {@link #error}.
     */
    public int testSome() {
        completed = 0;
        int code =
                MpiCalls.TEST_SOME.call(
                        capacity,
                        handles.address(),
                        completedCount.address(),
                        completedIndices.address(),
                        statuses.address());
        // The statuses hold codes only if the call says so.
        errorsInStatuses = code != 0 && MpiCalls.errorClass(code) == family.errorInStatus();
        if (code != 0 && !errorsInStatuses) {
            throw MpiCalls.TEST_SOME.failed(code, capacity + " requests");
        }
        int count = completedCount.get(JAVA_INT, 0);
        completed = count == family.undefined() ? 0 : count;
        return completed;
    }

    /**
     * The index of a request that the latest test has found complete.
     *
     * @param i from 0, below what {@link #testSome} has returned
     */
    public int completed(int i) {
        return completedIndices.get(JAVA_INT, checked(i) * (long) Integer.BYTES);
    }

    /** The code with which that transfer has ended, 0 for success. */
    public int error(int i) {
        long offset = status(i) + family.statusErrorOffset();
        return errorsInStatuses ? statuses.get(JAVA_INT, offset) : 0;
    }

    /** How many bytes that transfer has received. */
    public long received(int i) {
        long address = statuses.address() + status(i);
        int code = MpiCalls.GET_ELEMENTS.call(address, byteType, scratch.address());
        check(MpiCalls.GET_ELEMENTS, code, completed(i));
        return scratch.get(JAVA_LONG, 0);
    }

    /** Cancels a receive; {@link #testSome} says when it has ended. */
    public void cancel(int request) {
        check(MpiCalls.CANCEL, MpiCalls.CANCEL.call(handles.address() + offset(request)), request);
    }

    /**
     * Frees a request whose transfer is not awaited any more. The transfer continues: its memory
     * stays mapped until MPI is finished.
     */
    public void free(int request) {
        NativeFunction function = MpiCalls.FREE_REQUEST;
        check(function, function.call(handles.address() + offset(request)), request);
    }

    @Override
    public void close() {
        arena.close();
    }

    private static void check(NativeFunction function, int code, int request) {
        if (code != 0) {
            throw function.failed(code, "request " + request);
        }
    }

    private void clear(int request) {
        family.writeHandle(handles, offset(request), none);
    }

    private long offset(int request) {
        return Objects.checkIndex(request, capacity) * handleBytes;
    }

    private int checked(int i) {
        return Objects.checkIndex(i, completed);
    }

    private long status(int i) {
        return (long) checked(i) * family.statusBytes();
    }
}
