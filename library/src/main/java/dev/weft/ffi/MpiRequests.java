package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Transfers under way, each in a slot of a native array that MPI tests as a whole. Calls allocate
 * nothing on the Java heap unless they fail. For one thread at a time, and for that which may call
 * {@link Mpi}. Closing gives the array back and ends no transfer.
 */
public final class MpiRequests implements AutoCloseable {

    private final MpiFamily family;
    private final long none;
    private final long byteType;
    private final int capacity;
    private final Arena arena = Arena.ofShared();

    /** One handle per slot; {@code none} in a free one. */
    private final MemorySegment handles;

    private final long handleBytes;

    /** What the latest test has found: how many slots, which ones, and a status for each. */
    private final MemorySegment completedCount;

    private final MemorySegment completedSlots;
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
        this.completedSlots = arena.allocate(JAVA_INT, capacity);
        this.statuses = arena.allocate((long) capacity * family.statusBytes(), Long.BYTES);
        this.scratch = arena.allocate(JAVA_LONG);
        for (int slot = 0; slot < capacity; slot++) {
            clear(slot);
        }
    }

    public int capacity() {
        return capacity;
    }

    /** Whether no transfer is under way in the slot. */
    public boolean isFree(int slot) {
        return family.readHandle(handles, offset(slot)) == none;
    }

    /** Begins to send from memory that stays as it is until the slot completes. */
    public void isend(
            int slot, long address, int count, long type, int destination, int tag, long comm) {
        begin(MpiCalls.ISEND, slot, address, count, type, destination, tag, comm);
    }

    /** Begins to receive into memory that nobody looks at until the slot completes. */
    public void irecv(
            int slot, long address, int count, long type, int source, int tag, long comm) {
        begin(MpiCalls.IRECV, slot, address, count, type, source, tag, comm);
    }

    private void begin(
            MpiFunction function,
            int slot,
            long address,
            int count,
            long type,
            int peer,
            int tag,
            long comm) {
        if (!isFree(slot)) {
            throw new IllegalArgumentException(
                    "slot " + slot + " has a transfer under way: expected a free one");
        }
        long handle = handles.address() + offset(slot);
        int code = function.call(address, count, type, peer, tag, comm, handle);
        if (code != 0) {
            clear(slot);
            throw function.failed(
                    code,
                    Mpi.buffer(address, count, type)
                            + ", peer "
                            + peer
                            + ", tag "
                            + tag
                            + ", "
                            + Mpi.comm(comm));
        }
    }

    /**
     * Moves transfers on and tells how many have completed since the last call, 0 where none has;
     * their slots are free again. A transfer that has failed counts too: see {@link #error}.
     */
    public int testSome() {
        completed = 0;
        int code =
                MpiCalls.TEST_SOME.call(
                        capacity,
                        handles.address(),
                        completedCount.address(),
                        completedSlots.address(),
                        statuses.address());
        // The statuses hold codes only where the call says so.
        errorsInStatuses = code != 0 && MpiCalls.errorClass(code) == family.errorInStatus();
        if (code != 0 && !errorsInStatuses) {
            throw MpiCalls.TEST_SOME.failed(code, capacity + " slots");
        }
        int count = completedCount.get(JAVA_INT, 0);
        completed = count == family.undefined() ? 0 : count;
        return completed;
    }

    /**
     * The slot of a transfer that the latest test has found complete.
     *
     * @param i from 0 to below what {@link #testSome} has returned
     */
    public int completed(int i) {
        return completedSlots.get(JAVA_INT, checked(i) * (long) Integer.BYTES);
    }

    /** The code with which that transfer has ended, 0 where all went well. */
    public int error(int i) {
        long offset = status(i) + family.statusErrorOffset();
        return errorsInStatuses ? statuses.get(JAVA_INT, offset) : 0;
    }

    /** How many bytes that transfer has received. */
    public long received(int i) {
        long address = statuses.address() + status(i);
        int code = MpiCalls.GET_ELEMENTS.call(address, byteType, scratch.address());
        if (code != 0) {
            throw MpiCalls.GET_ELEMENTS.failed(code, "slot " + completed(i));
        }
        return scratch.get(JAVA_LONG, 0);
    }

    /** Whether that transfer has ended because of {@link #cancel}. */
    public boolean cancelled(int i) {
        long address = statuses.address() + status(i);
        int code = MpiCalls.TEST_CANCELLED.call(address, scratch.address());
        if (code != 0) {
            throw MpiCalls.TEST_CANCELLED.failed(code, "slot " + completed(i));
        }
        return scratch.get(JAVA_INT, 0) != 0;
    }

    /** Asks for the end of a receive; {@link #testSome} tells when it has ended. */
    public void cancel(int slot) {
        check(MpiCalls.CANCEL, MpiCalls.CANCEL.call(handles.address() + offset(slot)), slot);
    }

    /**
     * Gives a slot back whose transfer nobody waits for any more. The transfer goes on: its memory
     * stays mapped until MPI is finished.
     */
    public void free(int slot) {
        MpiFunction function = MpiCalls.FREE_REQUEST;
        check(function, function.call(handles.address() + offset(slot)), slot);
    }

    @Override
    public void close() {
        arena.close();
    }

    private static void check(MpiFunction function, int code, int slot) {
        if (code != 0) {
            throw function.failed(code, "slot " + slot);
        }
    }

    private void clear(int slot) {
        family.writeHandle(handles, offset(slot), none);
    }

    private long offset(int slot) {
        return Objects.checkIndex(slot, capacity) * handleBytes;
    }

    private int checked(int i) {
        return Objects.checkIndex(i, completed);
    }

    private long status(int i) {
        return (long) checked(i) * family.statusBytes();
    }
}
