package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * A control message between the progress threads of two ranks, and what either end must keep until
 * it has been sent or its rectangle has arrived. Its layout, in the byte order of the hosts'
 * processors, which must be the same:
 *
 * <pre>
 * byte   0  4 bytes  kind
 * byte   4  4 bytes  value of the word; of a failure: the rank that caused it
 * byte   8  8 bytes  key of the region
 * byte  16  8 bytes  offset in the part: of the word, or of the rectangle at the receiver
 * byte  24  8 bytes  an 8-byte value; of a rectangle: its offset at the sender
 * byte  32  8 bytes  offset of the flag
 * byte  40  8 bytes  offset of the counter, or -1
 * byte  48  4 bytes  value of the counter
 * byte  52  4 bytes  of a get: the mover to notify of its end, or -1
 * byte  56  4 bytes  its number of the move
 * byte  64  8 bytes  rows
 * byte  72  8 bytes  bytes of a row
 * byte  80  8 bytes  pitch at the sender
 * byte  88  8 bytes  pitch at the receiver
 * byte  96           end; of a failure: its text follows, UTF-8
 * </pre>
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

    void set(int kind, long key, long at, int value, long wide) {
        buffer.set(ValueLayout.JAVA_INT, 0, kind);
        buffer.set(ValueLayout.JAVA_INT, 4, value);
        buffer.set(ValueLayout.JAVA_LONG, 8, key);
        buffer.set(ValueLayout.JAVA_LONG, 16, at);
        buffer.set(ValueLayout.JAVA_LONG, 24, wide);
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
        buffer.set(ValueLayout.JAVA_LONG, 32, move.flagAt());
        buffer.set(ValueLayout.JAVA_LONG, 40, move.counterAt());
        buffer.set(ValueLayout.JAVA_INT, 48, counter);
        buffer.set(ValueLayout.JAVA_INT, 52, moverId);
        buffer.set(ValueLayout.JAVA_INT, 56, index);
        buffer.set(ValueLayout.JAVA_LONG, 64, move.rows());
        buffer.set(ValueLayout.JAVA_LONG, 72, move.rowBytes());
        buffer.set(ValueLayout.JAVA_LONG, 80, move.fromPitch());
        buffer.set(ValueLayout.JAVA_LONG, 88, move.toPitch());
    }

    /** Turns this into the put that answers a get. */
    void answer(MpiMessage get, long rectangle) {
        copyFrom(get);
        buffer.set(ValueLayout.JAVA_INT, 0, PUT);
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
        return buffer.get(ValueLayout.JAVA_INT, 0);
    }

    int value() {
        return buffer.get(ValueLayout.JAVA_INT, 4);
    }

    long key() {
        return buffer.get(ValueLayout.JAVA_LONG, 8);
    }

    long at() {
        return buffer.get(ValueLayout.JAVA_LONG, 16);
    }

    long wide() {
        return buffer.get(ValueLayout.JAVA_LONG, 24);
    }

    long flagAt() {
        return buffer.get(ValueLayout.JAVA_LONG, 32);
    }

    long counterAt() {
        return buffer.get(ValueLayout.JAVA_LONG, 40);
    }

    int counter() {
        return buffer.get(ValueLayout.JAVA_INT, 48);
    }

    int moverId() {
        return buffer.get(ValueLayout.JAVA_INT, 52);
    }

    int index() {
        return buffer.get(ValueLayout.JAVA_INT, 56);
    }

    long rows() {
        return buffer.get(ValueLayout.JAVA_LONG, 64);
    }

    long rowBytes() {
        return buffer.get(ValueLayout.JAVA_LONG, 72);
    }

    long fromPitch() {
        return buffer.get(ValueLayout.JAVA_LONG, 80);
    }

    long toPitch() {
        return buffer.get(ValueLayout.JAVA_LONG, 88);
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
