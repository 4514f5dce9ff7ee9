package dev.weft.cli.view;

import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.report.CallSpans;
import dev.weft.report.CallSpans.TrackKind;
import java.util.List;

/**
 * What the workers of one kind of a rank did, in equal slices of a call's time: the share of it in
 * which they were busy, in which they waited, and for whose rows they were busy most. To have more
 * to do and not do it is to wait; before the call and after the last span a worker is idle.
 */
final class BusyCells {

    private final double cellNs;
    private final double[] waitNs;
    private final double[][] busyNs;
    private int workers;

    /**
     * @param cells slices of the call
     */
    BusyCells(CallSpans call, CallSpans.RankSpans rank, boolean compute, int cells) {
        this.cellNs = (double) call.endNs() / cells;
        this.waitNs = new double[cells];
        this.busyNs = new double[cells][call.worldSize()];
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
            addWait(freeNs, span.startNs());
            long fromNs = Math.max(freeNs, span.startNs());
            if (span.kind() == Kind.WAIT) {
                addWait(fromNs, span.endNs());
            } else {
                addBusy(span.source(), fromNs, span.endNs());
            }
            freeNs = Math.max(freeNs, span.endNs());
        }
    }

    private void addWait(double fromNs, double endNs) {
        for (int cell = cell(fromNs); fromNs < endNs; cell++) {
            double untilNs = until(cell, endNs);
            waitNs[cell] += untilNs - fromNs;
            fromNs = untilNs;
        }
    }

    private void addBusy(int source, double fromNs, double endNs) {
        for (int cell = cell(fromNs); fromNs < endNs; cell++) {
            double untilNs = until(cell, endNs);
            busyNs[cell][source] += untilNs - fromNs;
            fromNs = untilNs;
        }
    }

    private int cell(double ns) {
        return Math.clamp((long) (ns / cellNs), 0, waitNs.length - 1);
    }

    /** The end of the cell, or of the span if that comes first; the last cell takes the rest. */
    private double until(int cell, double endNs) {
        return cell == waitNs.length - 1 ? endNs : Math.min(endNs, (cell + 1) * cellNs);
    }

    /** Whether there was anyone to do this kind of work. */
    boolean isEmpty() {
        return workers == 0;
    }

    double busyShare(int cell) {
        double sum = 0;
        for (double ns : busyNs[cell]) {
            sum += ns;
        }
        return share(sum);
    }

    double waitShare(int cell) {
        return share(waitNs[cell]);
    }

    private double share(double ns) {
        return workers == 0 ? 0 : ns / (cellNs * workers);
    }

    /** Whose rows kept the workers busy most; the first of equals. */
    int source(int cell) {
        int most = 0;
        for (int source = 1; source < busyNs[cell].length; source++) {
            if (busyNs[cell][source] > busyNs[cell][most]) {
                most = source;
            }
        }
        return most;
    }

    /** Of the whole call. */
    double busyShare() {
        double sum = 0;
        for (int cell = 0; cell < busyNs.length; cell++) {
            sum += busyShare(cell);
        }
        return sum / busyNs.length;
    }
}
