package dev.weft.fabric;

import dev.weft.fabric.FailureReport.Peer;
import dev.weft.fabric.FailureReport.Received;
import dev.weft.fabric.FailureReport.Run;
import dev.weft.fabric.FailureReport.Sent;
import dev.weft.fabric.FailureReport.State;
import dev.weft.fabric.FailureReport.Wait;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes a {@link FailureReport} as one line of text and reads it, so that processes can exchange
 * it. The line has items separated by semicolons; an item is a kind and its fields, separated by
 * commas. A lane is followed by its runs, the latest chunk first. Names are URL-encoded, so that
 * they contain no separator.
 */
final class FailureReportText {

    /** More than the report of any rank of the largest world. */
    private static final int MOST_CHARS = 1 << 20;

    private static final String HEAD = "report1";

    private final StringBuilder text = new StringBuilder(HEAD);
    private final List<Wait> waits = new ArrayList<>();
    private final List<Received> received = new ArrayList<>();
    private final List<Sent> sent = new ArrayList<>();
    private final List<Peer> peers = new ArrayList<>();

    /** The runs of the lane that is being read. */
    private final List<Run> runs = new ArrayList<>();

    private Sent lane;
    private Run latest;
    private String[] fields;
    private int field;

    private FailureReportText() {}

    static String write(FailureReport report) {
        FailureReportText to = new FailureReportText();
        to.item("rank", report.rank(), report.operator(), report.call());
        for (Wait w : report.waits()) {
            to.item(
                    "wait",
                    w.thread(),
                    w.what(),
                    w.from(),
                    w.source(),
                    w.chunk(),
                    w.number(),
                    w.waitedMs());
        }
        for (Received r : report.received()) {
            to.item("received", r.source(), r.arrived(), r.of(), r.last(), r.missing());
        }
        for (Sent s : report.sent()) {
            to.item("sent", s.lane(), s.done(), s.of());
            if (s.latest() != null) {
                to.run("latest", s.latest());
                s.runs().forEach(run -> to.run("run", run));
            }
        }
        for (Peer p : report.peers()) {
            to.item("peer", p.rank(), p.state(), p.call(), p.idleMs(), p.silentMs());
        }
        return to.text.toString();
    }

    private void run(String kind, Run run) {
        item(kind, run.from(), run.to(), run.source(), run.first(), run.last());
    }

    private void item(String kind, Object... values) {
        text.append(';').append(kind);
        for (Object value : values) {
            String printable = value.toString().replaceAll("\\p{Cntrl}", " ");
            text.append(',').append(URLEncoder.encode(printable, StandardCharsets.UTF_8));
        }
    }

    static FailureReport read(String text) {
        try {
            return new FailureReportText().parse(text);
        } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
            String begin = text.substring(0, Math.min(60, text.length()));
            String shown = URLEncoder.encode(begin, StandardCharsets.UTF_8);
            throw new IllegalArgumentException(
                    """
                    not a rank's report: '%s' of %s characters: expected what FailureReport.text() \
                    gives"""
                            .formatted(shown, text.length()),
                    e);
        }
    }

    private FailureReport parse(String whole) {
        if (whole.length() > MOST_CHARS) {
            throw new IllegalArgumentException("too long");
        }
        String[] items = whole.split(";", -1);
        if (!items[0].equals(HEAD)) {
            throw new IllegalArgumentException("another head");
        }
        begin(items[1], "rank");
        int rank = number();
        String operator = name();
        int call = number();
        end();
        if (rank < 0) {
            throw new IllegalArgumentException("no rank");
        }
        for (int i = 2; i < items.length; i++) {
            item(items[i]);
        }
        endLane();
        return new FailureReport(rank, operator, call, waits, received, sent, peers);
    }

    private void item(String item) {
        int comma = item.indexOf(',');
        String kind = item.substring(0, Math.max(0, comma));
        begin(item, kind);
        switch (kind) {
            case "wait" ->
                    waits.add(
                            new Wait(
                                    name(), name(), number(), number(), number(), number(),
                                    wide()));
            case "received" ->
                    received.add(new Received(number(), number(), number(), number(), number()));
            case "sent" -> {
                endLane();
                lane = new Sent(name(), number(), number(), null, List.of());
            }
            case "latest" -> latest = run();
            case "run" -> runs.add(run());
            case "peer" ->
                    peers.add(new Peer(number(), State.valueOf(name()), number(), wide(), wide()));
            default -> throw new IllegalArgumentException("another kind");
        }
        end();
    }

    private void endLane() {
        if (lane != null) {
            sent.add(new Sent(lane.lane(), lane.done(), lane.of(), latest, runs));
        }
        latest = null;
        runs.clear();
    }

    private Run run() {
        if (lane == null) {
            throw new IllegalArgumentException("no lane");
        }
        return new Run(number(), number(), number(), number(), number());
    }

    private void begin(String item, String kind) {
        fields = item.split(",", -1);
        field = 1;
        if (!fields[0].equals(kind)) {
            throw new IllegalArgumentException("another kind");
        }
    }

    private String name() {
        String name = URLDecoder.decode(fields[field++], StandardCharsets.UTF_8);
        if (name.chars().anyMatch(Character::isISOControl)) {
            throw new IllegalArgumentException("not for print");
        }
        return name;
    }

    private int number() {
        return Integer.parseInt(fields[field++]);
    }

    private long wide() {
        return Long.parseLong(fields[field++]);
    }

    private void end() {
        if (field != fields.length) {
            throw new IllegalArgumentException("too many fields");
        }
    }
}
