package dev.weft.cli.view;

import dev.weft.report.CallSpans;
import dev.weft.report.CallSpans.TrackKind;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What the workers of one kind of a rank did, in equal slices of a call's time: the share in which
 * they were busy, the share in which they waited, and whose rows kept them busy most. A worker that
 * has more to do and is not busy waits; before the call and after its last span it is idle.
 */
final class BusyCells {

    private final double cellNs;

    /** By cell and by source whose rows kept the workers busy; the last one is for waits. */
    private final double[][] ns;

    private final int waiting;
    private int workers;

    BusyCells(CallSpans call, CallSpans.RankSpans rank, boolean compute, int cells) {
        this.cellNs = (double) call.endNs() / cells;
        this.waiting = call.worldSize();
        this.ns = new double[cells][waiting + 1];
        for (Timeline.Track track : rank.tracks()) {
            boolean computes = TrackKind.of(track.name()) == TrackKind.COMPUTE;
            if (computes == compute && !track.spans().isEmpty()) {
                workers++;
                add(track.spans(), rank.startNs());
            }
        }
    }

    private void add(List<Timeline.Span> spans, long startNs) {
        long freeNs = startNs;
        for (Timeline.Span span : spans) {
            add(waiting, freeNs, span.startNs());
            long fromNs = Math.max(freeNs, span.startNs());
            add(span.kind() == Kind.WAIT ? waiting : span.source(), fromNs, span.endNs());
            freeNs = Math.max(freeNs, span.endNs());
        }
    }

    private void add(int column, double fromNs, double endNs) {
        int last = ns.length - 1;
        for (int cell = Math.clamp((long) (fromNs / cellNs), 0, last); fromNs < endNs; cell++) {
            // The last cell gets the rest.
            double untilNs = cell == last ? endNs : Math.min(endNs, (cell + 1) * cellNs);
            ns[cell][column] += untilNs - fromNs;
            fromNs = untilNs;
        }
    }

    /** Whether there was no worker of this kind. */
    boolean isEmpty() {
        return workers == 0;
    }

    double busyShare(int cell) {
        return share(Arrays.stream(ns[cell], 0, waiting).sum());
    }

    double waitShare(int cell) {
        return share(ns[cell][waiting]);
    }

    private double share(double timeNs) {
        return workers == 0 ? 0 : timeNs / (cellNs * workers);
    }

    /** Whose rows kept the workers busy most; the first of equals. */
    int source(int cell) {
        int most = 0;
        for (int source = 1; source < waiting; source++) {
            if (ns[cell][source] > ns[cell][most]) {
                most = source;
            }
        }
        return most;
    }

    /** The busy share of the whole call. */
    double busyShare() {
        return IntStream.range(0, ns.length).mapToDouble(this::busyShare).sum() / ns.length;
    }
}
