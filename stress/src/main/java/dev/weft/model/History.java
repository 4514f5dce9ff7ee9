package dev.weft.model;

import java.util.Arrays;

/** What one thread alone writes to one place, by how many of its steps are done. */
final class History {

    private static final int NOBODY = -1;

    private final String place;
    private final int initial;
    private int writer = NOBODY;
    private int[] values = new int[0];

    History(String place, int initial) {
        this.place = place;
        this.initial = initial;
    }

    /** From {@code at} steps on, {@code value} stands there. A thread's steps come in order. */
    void write(int thread, int at, int value) {
        if (writer != NOBODY && writer != thread) {
            throw new IllegalStateException(
                    place + " is written by thread " + writer + " and by thread " + thread);
        }
        writer = thread;
        int before = last();
        int filled = values.length;
        values = Arrays.copyOf(values, at + 1);
        Arrays.fill(values, filled, at, before);
        values[at] = value;
    }

    int last() {
        return values.length == 0 ? initial : values[values.length - 1];
    }

    /**
     * @param at by thread: how many of its steps are done
     */
    int value(int[] at) {
        return values.length == 0 ? initial : values[Math.min(at[writer], values.length - 1)];
    }

    @Override
    public String toString() {
        return place;
    }
}
