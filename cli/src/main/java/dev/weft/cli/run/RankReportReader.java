package dev.weft.cli.run;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.op.Candidate;
import dev.weft.op.Timeline;
import dev.weft.plan.Algorithm;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads what {@link RankReport} writes. Bytes that are none are an {@link IOException} of one line,
 * and no count in them takes more memory than the bytes behind it. For one thread.
 */
final class RankReportReader {

    private static final int CANDIDATE_BYTES = 1 + 4 + 8 + 8 + 1;
    private static final int LEAST_TRACK_BYTES = 2 + 4;
    private static final int SPAN_BYTES = 1 + 4 * 4 + 5 * 8;

    private final DataInputStream in;

    private RankReportReader(byte[] bytes) {
        this.in = new DataInputStream(new ByteArrayInputStream(bytes));
    }

    static RankReport read(byte[] bytes) throws IOException {
        RankReportReader reader = new RankReportReader(bytes);
        RankReport report;
        try {
            report = reader.report();
        } catch (IOException e) {
            int at = bytes.length - reader.in.available();
            String why =
                    e.getMessage() == null ? "is cut short" : ErrorMessage.oneLine(e.getMessage());
            throw new IOException("no report of a rank: at byte " + at + ": " + why, e);
        }
        if (reader.in.available() > 0) {
            throw new IOException(
                    "no report of a rank: " + reader.in.available() + " bytes follow its end");
        }
        return report;
    }

    private RankReport report() throws IOException {
        String algorithm = in.readUTF();
        String device = in.readUTF();
        String engine = in.readUTF();
        int computeWorkers = in.readInt();
        int lanes = in.readInt();
        long chunkRows = in.readLong();
        int chunks = in.readInt();
        long[] computeOnlyNs = longs();
        int rounds = computeOnlyNs.length;
        return new RankReport(
                algorithm,
                device,
                engine,
                computeWorkers,
                lanes,
                chunkRows,
                chunks,
                computeOnlyNs,
                longs(rounds),
                longs(rounds),
                longs(rounds),
                longs(rounds),
                in.readDouble(),
                in.readBoolean(),
                in.readBoolean(),
                in.readBoolean(),
                candidates(),
                timeline());
    }

    /** How many things of at least so many bytes each come next. */
    private int count(int bytesEach) throws IOException {
        int count = in.readInt();
        if (count < 0 || count > in.available() / bytesEach) {
            throw new IOException(
                    "a count of " + count + " where " + in.available() + " bytes are left");
        }
        return count;
    }

    private long[] longs() throws IOException {
        long[] values = new long[count(Long.BYTES)];
        for (int i = 0; i < values.length; i++) {
            values[i] = in.readLong();
        }
        return values;
    }

    /** Of another view of the same rounds. */
    private long[] longs(int rounds) throws IOException {
        long[] values = longs();
        if (values.length != rounds) {
            throw new IOException(values.length + " rounds of one view, " + rounds + " of another");
        }
        return values;
    }

    private <E> E constant(E[] constants) throws IOException {
        int ordinal = in.readUnsignedByte();
        if (ordinal >= constants.length) {
            throw new IOException(ordinal + ": expected 0 to " + (constants.length - 1));
        }
        return constants[ordinal];
    }

    private List<Candidate> candidates() throws IOException {
        List<Candidate> candidates = new ArrayList<>();
        for (int left = count(CANDIDATE_BYTES); left > 0; left--) {
            candidates.add(
                    new Candidate(
                            constant(Algorithm.values()),
                            in.readInt(),
                            in.readDouble(),
                            in.readDouble(),
                            in.readBoolean()));
        }
        return candidates;
    }

    private Timeline timeline() throws IOException {
        int rank = in.readInt();
        long startNs = in.readLong();
        long elapsedNs = in.readLong();
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int left = count(LEAST_TRACK_BYTES); left > 0; left--) {
            tracks.add(new Timeline.Track(in.readUTF(), spans()));
        }
        return new Timeline(rank, startNs, elapsedNs, tracks);
    }

    private List<Timeline.Span> spans() throws IOException {
        List<Timeline.Span> spans = new ArrayList<>();
        for (int left = count(SPAN_BYTES); left > 0; left--) {
            spans.add(
                    new Timeline.Span(
                            constant(Timeline.Kind.values()),
                            in.readInt(),
                            in.readInt(),
                            in.readInt(),
                            in.readInt(),
                            in.readLong(),
                            in.readLong(),
                            in.readLong(),
                            in.readLong(),
                            in.readLong()));
        }
        return spans;
    }
}
