package dev.weft.sim;

import java.util.Arrays;

/** A transfer's path: the stations that serve it and the work of each. Reused by its lane. */
final class Route {

    private Station[] stations = new Station[8];
    private double[] workNs = new double[8];
    private int size;
    private double linkNs;
    double latencyNs;

    /** Starts a path on which each link has {@code newLinkNs} of work. */
    void begin(double newLinkNs) {
        size = 0;
        linkNs = newLinkNs;
        latencyNs = 0;
    }

    void add(Station station) {
        add(station, linkNs);
    }

    void add(Station station, double work) {
        if (size == stations.length) {
            stations = Arrays.copyOf(stations, 2 * size);
            workNs = Arrays.copyOf(workNs, 2 * size);
        }
        stations[size] = station;
        workNs[size++] = work;
    }

    /** Lets every station serve the customer; returns how often the customer will be notified. */
    int serve(Station.Customer customer) {
        for (int i = 0; i < size; i++) {
            stations[i].serve(customer, workNs[i]);
        }
        return size;
    }

    /** The time if nothing else is on its way. */
    double aloneNs() {
        double most = 0;
        for (int i = 0; i < size; i++) {
            most = Math.max(most, workNs[i]);
        }
        return most;
    }
}
