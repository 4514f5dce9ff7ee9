package dev.weft.report;

import dev.weft.trace.Timeline.Kind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The chain of spans that decided how long a call took. It starts at the span that ended last and
 * goes backwards, each time to what the span waited for longest: the transfer that brought its
 * rows, or what the same worker did before.
 */
public final class CriticalPath {

    private final CallSpans call;
    private final SpanDependencies releases;

    /** By number: the same worker's previous span that was not a wait, or -1. */
    private final int[] before;

    private CriticalPath(CallSpans call, SpanDependencies releases) {
        this.call = call;
        this.releases = releases;
        this.before = new int[call.size()];
        int number = 0;
        for (CallSpans.RankSpans rank : call.ranks()) {
            for (var track : rank.tracks()) {
                int last = -1;
                for (int i = 0; i < track.spans().size(); i++, number++) {
                    before[number] = last;
                    last = track.spans().get(i).kind() == Kind.WAIT ? last : number;
                }
            }
        }
    }

    /** Numbers of spans in the order of time; empty for a call without spans. */
    public static List<Integer> of(CallSpans call, SpanDependencies releases) {
        return new CriticalPath(call, releases).walk();
    }

    private List<Integer> walk() {
        List<Integer> path = new ArrayList<>();
        for (int at = last(); at >= 0; at = decisive(at)) {
            path.add(at);
        }
        Collections.reverse(path);
        return path;
    }

    private int last() {
        return IntStream.range(0, call.size())
                .filter(i -> call.span(i).kind() != Kind.WAIT)
                .reduce((a, b) -> call.span(b).endNs() > call.span(a).endNs() ? b : a)
                .orElse(-1);
    }

    /**
     * Of all that the span needed, what ended last. It must have begun earlier, or the walk would
     * not end: a clock read a little late must not make two spans wait for each other.
     */
    private int decisive(int number) {
        int decisive = -1;
        for (int candidate : releases.releasedBy(number)) {
            decisive = later(decisive, candidate, number);
        }
        int earlier = before[number];
        // An accelerator multiplies several blocks at once, some of which begin together.
        while (earlier >= 0 && call.span(earlier).startNs() >= call.span(number).startNs()) {
            earlier = before[earlier];
        }
        return earlier < 0 ? decisive : later(decisive, earlier, number);
    }

    private int later(int decisive, int candidate, int number) {
        if (call.span(candidate).startNs() >= call.span(number).startNs()) {
            return decisive;
        }
        return decisive < 0 || call.span(candidate).endNs() > call.span(decisive).endNs()
                ? candidate
                : decisive;
    }
}
