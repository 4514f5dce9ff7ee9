package dev.weft.fabric.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * A secret that the ranks of one run share: 16 random bytes, or zeros if ranks join without a
 * starter. No message shows it.
 */
record RunToken(long first, long second) {

    static final RunToken NONE = new RunToken(0, 0);

    private static final int DIGITS = 32;

    static RunToken random() {
        SecureRandom random = new SecureRandom();
        return new RunToken(random.nextLong(), random.nextLong());
    }

    /**
     * @param text as {@link #hex} wrote it, or null for none
     * @throws IllegalArgumentException without the text in its message
     */
    static RunToken parse(String text) {
        if (text == null) {
            return NONE;
        }
        if (text.length() != DIGITS || !text.chars().allMatch(HexFormat::isHexDigit)) {
            throw new IllegalArgumentException(
                    """
                    environment variable %s has %s characters: expected the %s hexadecimal digits \
                    that a starter sets"""
                            .formatted(RankEnvironment.TOKEN, text.length(), DIGITS));
        }
        return new RunToken(
                Long.parseUnsignedLong(text, 0, DIGITS / 2, 16),
                Long.parseUnsignedLong(text, DIGITS / 2, DIGITS, 16));
    }

    static RunToken read(MemorySegment block, long at) {
        return new RunToken(
                block.get(ValueLayout.JAVA_LONG, at),
                block.get(ValueLayout.JAVA_LONG, at + Long.BYTES));
    }

    void write(MemorySegment block, long at) {
        block.set(ValueLayout.JAVA_LONG, at, first);
        block.set(ValueLayout.JAVA_LONG, at + Long.BYTES, second);
    }

    boolean isSet() {
        return !equals(NONE);
    }

    String hex() {
        HexFormat hex = HexFormat.of();
        return hex.toHexDigits(first) + hex.toHexDigits(second);
    }

    @Override
    public String toString() {
        return isSet() ? "a token" : "no token";
    }
}
