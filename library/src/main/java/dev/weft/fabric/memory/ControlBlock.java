package dev.weft.fabric.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * The layout of the words by which a rank tells the group about itself. Words that different ranks
 * poll are two cache lines apart. The owner is the only writer of every word.
 *
 * <pre>
 * byte    0    8 bytes  magic "WEFTCTL1"
 * byte    8    4 bytes  layout version
 * byte   12    4 bytes  ranks in the world
 * byte   16   16 bytes  run token, zero if ranks join without a starter
 * byte   32    8 bytes  build id; zero, like the token, between threads and under MPI
 * byte  128    4 bytes  barriers and exchanges that the owner has entered
 * byte  256  128 bytes  exchanged values, 8 of even and 8 of odd exchanges
 * byte  384    4 bytes  state: 0 absent, 1 present, 2 left, 3 failed
 * byte  388    4 bytes  the rank that caused the failure; written before state becomes 3
 * byte  512    8 bytes  work done: grows with each transfer and block (heartbeat; the owner's threads add)
 * byte  640    4 bytes  length of the failure message
 * byte  644  892 bytes  failure message, UTF-8; written before state becomes 3
 * byte 1536             end
 * </pre>
 */
public final class ControlBlock {

    public static final long BYTES = 1536;
    public static final int VERSION = 3;

    static final int PRESENT = 1;
    public static final int LEFT = 2;
    public static final int FAILED = 3;

    static final long MAGIC_AT = 0;
    static final long VERSION_AT = 8;
    static final long RANKS_AT = 12;
    static final long TOKEN_AT = 16;
    static final long BUILD_AT = 32;
    static final long ENTERED_AT = 128;
    static final long EXCHANGED_AT = 256;
    static final int EXCHANGED_VALUES = 8;
    static final long STATE_AT = 384;
    static final long CAUSE_AT = 388;
    static final long WORK_AT = 512;
    static final long MESSAGE_LENGTH_AT = 640;
    static final long MESSAGE_AT = 644;

    /** "WEFTCTL1" read as a little-endian number. */
    static final long MAGIC = 0x314C_5443_5446_4557L;

    private ControlBlock() {}

    public static void initialise(MemorySegment block, int ranks) {
        block.set(ValueLayout.JAVA_LONG, MAGIC_AT, MAGIC);
        block.set(ValueLayout.JAVA_INT, VERSION_AT, VERSION);
        block.set(ValueLayout.JAVA_INT, RANKS_AT, ranks);
        Words.intVolatile(block, STATE_AT, PRESENT);
    }

    /** Writes the run and the build of the owner, before others can see the block. */
    static void identify(MemorySegment block, RunToken token, long build) {
        token.write(block, TOKEN_AT);
        block.set(ValueLayout.JAVA_LONG, BUILD_AT, build);
    }

    /**
     * What is wrong with the owner's version, world, run or build; null if they are this rank's.
     */
    static String mismatch(MemorySegment block, int ranks, RunToken token, long build) {
        if (block.byteSize() < BYTES || block.get(ValueLayout.JAVA_LONG, MAGIC_AT) != MAGIC) {
            return "is not a Weft control file";
        }
        int version = block.get(ValueLayout.JAVA_INT, VERSION_AT);
        if (version != VERSION) {
            return "has layout version " + version + ", this Weft has " + VERSION;
        }
        int theirRanks = block.get(ValueLayout.JAVA_INT, RANKS_AT);
        if (theirRanks != ranks) {
            return "expects " + theirRanks + " ranks, this rank " + ranks;
        }
        RunToken theirs = RunToken.read(block, TOKEN_AT);
        if (!theirs.equals(token)) {
            Object own = theirs.isSet() && token.isSet() ? "another one" : token;
            return """
                    is of another run: it has %s, this rank %s; expected the same %s on all ranks, \
                    as their starter sets it"""
                    .formatted(theirs, own, RankEnvironment.TOKEN);
        }
        long theirBuild = block.get(ValueLayout.JAVA_LONG, BUILD_AT);
        return theirBuild == build
                ? null
                : "is of build %s, this rank of build %s: expected ranks of one and the same Weft"
                        .formatted(BuildId.text(theirBuild), BuildId.text(build));
    }

    /**
     * Marks the owner as failed. This release pairs with the acquire of state FAILED in {@link
     * #failure}'s callers.
     *
     * @param causeRank the world's rank that caused it: the owner, or the peer that it waited for
     */
    static void fail(MemorySegment block, int causeRank, String message) {
        byte[] utf8 = message.getBytes(StandardCharsets.UTF_8);
        int length = (int) Math.min(utf8.length, BYTES - MESSAGE_AT);
        MemorySegment.copy(utf8, 0, block, ValueLayout.JAVA_BYTE, MESSAGE_AT, length);
        block.set(ValueLayout.JAVA_INT, MESSAGE_LENGTH_AT, length);
        block.set(ValueLayout.JAVA_INT, CAUSE_AT, causeRank);
        Words.intVolatile(block, STATE_AT, FAILED);
    }

    static int causeRank(MemorySegment block) {
        return block.get(ValueLayout.JAVA_INT, CAUSE_AT);
    }

    static String failure(MemorySegment block) {
        // A corrupt length must not make this rank read past the block.
        long room = BYTES - MESSAGE_AT;
        long length = Math.clamp(block.get(ValueLayout.JAVA_INT, MESSAGE_LENGTH_AT), 0, room);
        byte[] utf8 = block.asSlice(MESSAGE_AT, length).toArray(ValueLayout.JAVA_BYTE);
        // Another process may have written anything; make it fit a one-line message.
        return new String(utf8, StandardCharsets.UTF_8)
                .lines()
                .findFirst()
                .orElse("")
                .replaceAll("\\p{Cntrl}", "?");
    }
}
