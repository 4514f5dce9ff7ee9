package dev.weft.sim;

import java.util.Arrays;

/**
 * Serves several customers at once and shares its rate equally among them: a link, a bus, the cores
 * of a host. Work is counted in the nanoseconds that one customer alone would need. With n in
 * service, each proceeds at the rate {@code min(1, capacity / n)}.
 *
 * <p>All proceed alike, so one clock of service done is enough for all, and each ends when that
 * clock has advanced by its work: a change costs the logarithm of the number in service. Customers
 * that arrive and leave at the same time may do so in any order.
 */
final class Station implements Events.Action {

    /** Is notified when its work is done. */
    interface Customer {
        void served();
    }

    private final Events events;
    private final double capacity;

    /** A heap by the service clock at which each ends. */
    private double[] ends = new double[4];

    private Customer[] customers = new Customer[4];
    private int size;
    private double served;
    private double servedAtNs;
    private int version;
    private double totalWorkNs;

    Station(Events events, double capacity) {
        this.events = events;
        this.capacity = capacity;
    }

    /** The least time in which all the work so far can be done. */
    double leastNs() {
        return totalWorkNs / Math.max(capacity, Double.MIN_NORMAL);
    }

    void serve(Customer customer, double workNs) {
        proceed();
        totalWorkNs += workNs;
        if (size == ends.length) {
            ends = Arrays.copyOf(ends, 2 * size);
            customers = Arrays.copyOf(customers, 2 * size);
        }
        insert(served + workNs, customer);
        expectNext();
    }

    private void proceed() {
        double now = events.now();
        if (size > 0) {
            served += (now - servedAtNs) * rate();
        } else {
            served = 0;
        }
        servedAtNs = now;
    }

    private double rate() {
        return Math.min(1, capacity / size);
    }

    private void expectNext() {
        version++;
        if (size > 0) {
            double left = Math.max(0, ends[0] - served);
            events.addFirst(events.now() + left / rate(), this, version);
        }
    }

    /** The end of the next customer, unless something has changed since it was predicted. */
    @Override
    public void run(int expected) {
        if (expected != version) {
            return;
        }
        served = ends[0];
        servedAtNs = events.now();
        int done = 0;
        Customer first = customers[0];
        Customer[] others = null;
        while (size > 0 && ends[0] <= served) {
            if (done > 0) {
                others = others == null ? new Customer[4] : others;
                others = done > others.length ? Arrays.copyOf(others, 2 * done) : others;
                others[done - 1] = customers[0];
            }
            done++;
            removeFirst();
        }
        expectNext();
        first.served();
        for (int i = 0; i < done - 1; i++) {
            others[i].served();
        }
    }

    private void insert(double end, Customer customer) {
        int at = size++;
        while (at > 0 && end < ends[(at - 1) / 2]) {
            ends[at] = ends[(at - 1) / 2];
            customers[at] = customers[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        ends[at] = end;
        customers[at] = customer;
    }

    private void removeFirst() {
        size--;
        double end = ends[size];
        Customer customer = customers[size];
        customers[size] = null;
        int at = 0;
        for (int child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && ends[child + 1] < ends[child]) {
                child++;
            }
            if (end <= ends[child]) {
                break;
            }
            ends[at] = ends[child];
            customers[at] = customers[child];
            at = child;
        }
        if (size > 0) {
            ends[at] = end;
            customers[at] = customer;
        }
    }
}
