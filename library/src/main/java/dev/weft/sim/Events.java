package dev.weft.sim;

import java.util.Arrays;

/**
 * Future events in order of time: a binary heap in arrays, so that the cost of an event does not
 * depend on how many came before. At the same time, ends of service come first, then what was added
 * first.
 */
final class Events {

    /** An event. */
    interface Action {
        /** Receives the detail that was given when it was added. */
        void run(int detail);
    }

    private double[] times = new double[64];
    private long[] ranks = new long[64];
    private Action[] actions = new Action[64];
    private int[] details = new int[64];
    private int size;
    private long added;
    private long processed;
    private double now;

    /** The time of the current event. */
    double now() {
        return now;
    }

    /** How many events have been processed. */
    long processed() {
        return processed;
    }

    void add(double time, Action action, int detail) {
        insert(time, added++, action, detail);
    }

    /** Like {@link #add}, but before all other events of the same time. */
    void addFirst(double time, Action action, int detail) {
        insert(time, added++ - Long.MAX_VALUE, action, detail);
    }

    private void insert(double time, long rank, Action action, int detail) {
        if (size == times.length) {
            times = Arrays.copyOf(times, 2 * size);
            ranks = Arrays.copyOf(ranks, 2 * size);
            actions = Arrays.copyOf(actions, 2 * size);
            details = Arrays.copyOf(details, 2 * size);
        }
        int at = size++;
        while (at > 0 && isBefore(time, rank, (at - 1) / 2)) {
            move((at - 1) / 2, at);
            at = (at - 1) / 2;
        }
        put(at, time, rank, action, detail);
    }

    /** Runs all events, including those that they add. */
    void run() {
        while (size > 0) {
            now = times[0];
            Action action = actions[0];
            int detail = details[0];
            removeFirst();
            processed++;
            action.run(detail);
        }
    }

    private void removeFirst() {
        size--;
        double time = times[size];
        long rank = ranks[size];
        Action action = actions[size];
        int detail = details[size];
        actions[size] = null;
        if (size == 0) {
            return;
        }
        int at = 0;
        for (int child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && isBefore(times[child + 1], ranks[child + 1], child)) {
                child++;
            }
            if (isBefore(time, rank, child)) {
                break;
            }
            move(child, at);
            at = child;
        }
        put(at, time, rank, action, detail);
    }

    private boolean isBefore(double time, long rank, int other) {
        return time < times[other] || time == times[other] && rank < ranks[other];
    }

    private void move(int from, int to) {
        put(to, times[from], ranks[from], actions[from], details[from]);
    }

    private void put(int at, double time, long rank, Action action, int detail) {
        times[at] = time;
        ranks[at] = rank;
        actions[at] = action;
        details[at] = detail;
    }
}
