package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * A control message between the progress threads of two ranks, and what either end must keep until
 * it has been sent or its rectangle has arrived. It has the fields of {@link Field}, in the byte
 * order of the hosts' processors, which must be the same; the text of a failure follows, UTF-8.
 */
final class MpiMessage {

    /** The most bytes of a message; the text of a failure is cut off here. */
    static final int MAX_BYTES = 1024;

    /** Bytes of a message that is not a failure. */
    static final int BYTES = 96;

    /** A word of the receiver's own part. */
    static final int WORD = 1;

    /** A word of the sender's part, for the receiver's mirror. */
    static final int PUBLISHED = 2;

    /** An 8-byte value of the sender's part, for the receiver's mirror. */
    static final int VALUE = 3;

    /** A rectangle follows, in fragments. */
    static final int PUT = 4;

    /** The receiver is to put a rectangle. */
    static final int GET = 5;

    /** The sender's work counter. */
    static final int WORK = 6;

    /** The sender has left: it signals no more. */
    static final int LEFT = 7;

    /** The sender has failed. */
    static final int FAILED = 8;

    /** The sender has released a region. */
    static final int RELEASED = 9;

    /** Where a field lies in a message, and how many bytes it has. */
    enum Field {
        KIND(0, 4),
        /** Of the word; of a failure: the rank that caused it. */
        VALUE(4, 4),
        /** Of the region. */
        KEY(8, 8),
        /** The offset in the part: of the word, or of the rectangle at the receiver. */
        AT(16, 8),
        /** An 8-byte value; of a rectangle: its offset at the sender. */
        WIDE(24, 8),
        FLAG_AT(32, 8),
        /** The offset of the counter, or -1. */
        COUNTER_AT(40, 8),
        COUNTER(48, 4),
        /** Of a get: the mover to notify of its end, or -1. */
        MOVER(52, 4),
        /** That mover's number of the move. */
        INDEX(56, 4),
        ROWS(64, 8),
        ROW_BYTES(72, 8),
        /** Bytes from row to row at the sender. */
        FROM_PITCH(80, 8),
        /** Bytes from row to row at the receiver. */
        TO_PITCH(88, 8);

        private final int at;
        private final int bytes;

        Field(int at, int bytes) {
            this.at = at;
            this.bytes = bytes;
        }
    }

    private final MemorySegment buffer;
    private int length;

    /** For a put: the address of the rectangle at this end. */
    long address;

    /** For a put: how it is cut; otherwise null. */
    MpiFragments fragments;

    /** The first fragment that MPI has not been given. */
    int nextFragment;

    /** Sends or receives that have not ended. */
    int left;

    /** The mover that awaits the end of a put that this rank has started. */
    MpiChunkMover mover;

    MpiMessage(Arena arena, int bytes) {
        buffer = arena.allocate(bytes, Long.BYTES);
    }

    long address() {
        return buffer.address();
    }

    int length() {
        return length;
    }

    long get(Field field) {
        return field.bytes == Integer.BYTES
                ? buffer.get(ValueLayout.JAVA_INT, field.at)
                : buffer.get(ValueLayout.JAVA_LONG, field.at);
    }

    private void put(Field field, long value) {
        if (field.bytes == Integer.BYTES) {
            buffer.set(ValueLayout.JAVA_INT, field.at, (int) value);
        } else {
            buffer.set(ValueLayout.JAVA_LONG, field.at, value);
        }
    }

    void set(int kind, long key, long at, int value, long wide) {
        put(Field.KIND, kind);
        put(Field.VALUE, value);
        put(Field.KEY, key);
        put(Field.AT, at);
        put(Field.WIDE, wide);
        clear();
    }

    /** Clears what was kept for the previous message. */
    private void clear() {
        length = BYTES;
        fragments = null;
        nextFragment = 0;
        left = 0;
        mover = null;
    }

    void failure(int causeRank, String message) {
        set(FAILED, 0, 0, causeRank, 0);
        byte[] utf8 = message.getBytes(StandardCharsets.UTF_8);
        int room = Math.min(utf8.length, MAX_BYTES - BYTES);
        MemorySegment.copy(utf8, 0, buffer, ValueLayout.JAVA_BYTE, BYTES, room);
        length = BYTES + room;
    }

    void rectangle(int kind, Move move, int flag, int counter, int moverId, int index) {
        set(kind, ((MemoryRegion) move.region()).key(), move.toAt(), flag, move.fromAt());
        put(Field.FLAG_AT, move.flagAt());
        put(Field.COUNTER_AT, move.counterAt());
        put(Field.COUNTER, counter);
        put(Field.MOVER, moverId);
        put(Field.INDEX, index);
        put(Field.ROWS, move.rows());
        put(Field.ROW_BYTES, move.rowBytes());
        put(Field.FROM_PITCH, move.fromPitch());
        put(Field.TO_PITCH, move.toPitch());
    }

    /** Turns this into the put that answers a get. */
    void answer(MpiMessage get, long rectangle) {
        copyFrom(get);
        put(Field.KIND, PUT);
        cut(rectangle);
    }

    /** Cuts the rectangle of a put into fragments. */
    void cut(long rectangle) {
        address = rectangle;
        fragments = MpiFragments.of(this);
        left = fragments.count();
    }

    int fragmentCount() {
        return fragments == null ? 0 : fragments.count();
    }

    boolean isPutFrom(long key) {
        return kind() == PUT && key() == key;
    }

    int kind() {
        return number(Field.KIND);
    }

    long key() {
        return get(Field.KEY);
    }

    /** A field of 4 bytes. */
    int number(Field field) {
        return (int) get(field);
    }

    String failureText(int received) {
        int bytes = Math.clamp(received - BYTES, 0, MAX_BYTES - BYTES);
        return new String(
                buffer.asSlice(BYTES, bytes).toArray(ValueLayout.JAVA_BYTE),
                StandardCharsets.UTF_8);
    }

    void copyFrom(MpiMessage other) {
        MemorySegment.copy(other.buffer, 0, buffer, 0, BYTES);
        clear();
    }
}
