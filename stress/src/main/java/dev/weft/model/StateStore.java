package dev.weft.model;

import java.util.Arrays;

/**
 * States in the order in which they were found, each with the one that it was found from. A state
 * takes one or two longs, four bytes for its parent and about eight for its place in the index.
 */
final class StateStore {

    private static final int PAGE_BITS = 13;
    private static final int PAGE = 1 << PAGE_BITS;

    private final int[] shifts;
    private final int[] longs;
    private final long[] masks;
    private final int width;
    private final long[] key;
    private long[][] keys = new long[16][];
    private int[][] parents = new int[16][];

    /** Open addressing; a state's number plus one, 0 where free. */
    private int[] index = new int[1 << 16];

    private int size;

    /**
     * @param largest by thread: the most that is stored for it
     */
    StateStore(int[] largest) {
        shifts = new int[largest.length];
        longs = new int[largest.length];
        masks = new long[largest.length];
        int used = 0;
        int word = 0;
        for (int t = 0; t < largest.length; t++) {
            int bits = Integer.SIZE - Integer.numberOfLeadingZeros(largest[t]);
            if (used + bits > Long.SIZE) {
                word++;
                used = 0;
            }
            longs[t] = word;
            shifts[t] = used;
            masks[t] = (1L << bits) - 1;
            used += bits;
        }
        width = word + 1;
        key = new long[width];
    }

    /** States that a heap has room for, with two longs each and some air. */
    static int fitting(long heapBytes) {
        return Math.clamp(heapBytes / 48, 1, 200_000_000);
    }

    int size() {
        return size;
    }

    /** Whether the state is new, in which case it is kept. */
    boolean add(int[] state, int parent) {
        Arrays.fill(key, 0);
        for (int t = 0; t < state.length; t++) {
            key[longs[t]] |= (long) state[t] << shifts[t];
        }
        int at = place();
        if (index[at] != 0) {
            return false;
        }
        append(parent);
        index[at] = size;
        if (size > index.length / 10 * 7) {
            grow();
        }
        return true;
    }

    /** Where the key is, or where it belongs. */
    private int place() {
        int at = hash(key, 0) & index.length - 1;
        while (index[at] != 0 && !isKey(index[at] - 1)) {
            at = at + 1 & index.length - 1;
        }
        return at;
    }

    private int hash(long[] words, int from) {
        long hash = 0;
        for (int i = from; i < from + width; i++) {
            hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15L;
            hash ^= hash >>> 32;
        }
        return (int) hash;
    }

    private boolean isKey(int number) {
        long[] page = keys[number >>> PAGE_BITS];
        int from = (number & PAGE - 1) * width;
        for (int i = 0; i < width; i++) {
            if (page[from + i] != key[i]) {
                return false;
            }
        }
        return true;
    }

    private void append(int parent) {
        int page = size >>> PAGE_BITS;
        if (page == keys.length) {
            keys = Arrays.copyOf(keys, 2 * page);
            parents = Arrays.copyOf(parents, 2 * page);
        }
        if (keys[page] == null) {
            keys[page] = new long[PAGE * width];
            parents[page] = new int[PAGE];
        }
        System.arraycopy(key, 0, keys[page], (size & PAGE - 1) * width, width);
        parents[page][size & PAGE - 1] = parent;
        size++;
    }

    private void grow() {
        index = new int[2 * index.length];
        for (int number = 0; number < size; number++) {
            int at = hash(keys[number >>> PAGE_BITS], (number & PAGE - 1) * width);
            at &= index.length - 1;
            while (index[at] != 0) {
                at = at + 1 & index.length - 1;
            }
            index[at] = number + 1;
        }
    }

    void load(int number, int[] state) {
        long[] page = keys[number >>> PAGE_BITS];
        int from = (number & PAGE - 1) * width;
        for (int t = 0; t < state.length; t++) {
            state[t] = (int) (page[from + longs[t]] >>> shifts[t] & masks[t]);
        }
    }

    /** The state that a state was found from, or -1 for the first. */
    int parent(int number) {
        return parents[number >>> PAGE_BITS][number & PAGE - 1];
    }
}
