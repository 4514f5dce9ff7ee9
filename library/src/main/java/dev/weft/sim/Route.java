package dev.weft.sim;

import java.util.Arrays;

/** A transfer's way: the stations that serve it and what each has to do. Reused by its lane. */
final class Route {

    private Station[] stations = new Station[8];
    private double[] workNs = new double[8];
    private int size;
    private double linkNs;
    double latencyNs;

    /** Begins a way on which each link has {@code newLinkNs} to do. */
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

    /** Has every station serve the customer, which is told as many times as this says. */
    int serve(Station.Customer customer) {
        for (int i = 0; i < size; i++) {
            stations[i].serve(customer, workNs[i]);
        }
        return size;
    }

    /** What it takes where nothing else is on its way. */
    double aloneNs() {
        double most = 0;
        for (int i = 0; i < size; i++) {
            most = Math.max(most, workNs[i]);
        }
        return most;
    }
}
