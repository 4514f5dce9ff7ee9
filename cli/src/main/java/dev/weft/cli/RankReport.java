package dev.weft.cli;

import dev.weft.op.Candidate;
import dev.weft.op.Timeline;
import dev.weft.plan.Algorithm;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What one rank measured and checked, and how it travels from a rank's process to the command: a
 * private file between two halves of the same program, so it carries no version.
 *
 * @param algorithm what auto chose, or what was asked for
 * @param device {@code cpu}, or {@code cuda:} and the GPU's name
 * @param progressCpu cores that the fabric's own thread took up during the pipelined calls; NaN
 *     where it has none
 * @param candidates what auto looked at; none where the algorithm was asked for
 * @param gatheredExact whether gathered A equalled the inputs byte for byte
 * @param keptEqual whether the product that came with gathered A equalled the measured one bitwise;
 *     on a GPU, whether that of the sequential operator did
 * @param keptWithinBound whether it kept to the float64 bound; looked at only where its bits differ
 *     and the engine allows that; on a GPU, whether every element of the measured one, and of the
 *     other where it differs, lay within the bound of plain sums on the device
 */
record RankReport(
        String algorithm,
        String device,
        String engine,
        int computeWorkers,
        int lanes,
        long chunkRows,
        int chunks,
        long[] computeOnlyNs,
        long[] commOnlyNs,
        long[] sequentialNs,
        long[] sequentialGatherNs,
        long[] pipelinedNs,
        double progressCpu,
        boolean gatheredExact,
        boolean keptEqual,
        boolean keptWithinBound,
        List<Candidate> candidates,
        Timeline timeline) {

    /** The same with the first rounds alone. */
    RankReport first(int rounds) {
        return new RankReport(
                algorithm,
                device,
                engine,
                computeWorkers,
                lanes,
                chunkRows,
                chunks,
                Arrays.copyOf(computeOnlyNs, rounds),
                Arrays.copyOf(commOnlyNs, rounds),
                Arrays.copyOf(sequentialNs, rounds),
                Arrays.copyOf(sequentialGatherNs, rounds),
                Arrays.copyOf(pipelinedNs, rounds),
                progressCpu,
                gatheredExact,
                keptEqual,
                keptWithinBound,
                candidates,
                timeline);
    }

    void write(Path file) throws IOException {
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try (DataOutputStream out =
                new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(part)))) {
            write(out);
        }
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private void write(DataOutputStream out) throws IOException {
        out.writeUTF(algorithm);
        out.writeUTF(device);
        out.writeUTF(engine);
        out.writeInt(computeWorkers);
        out.writeInt(lanes);
        out.writeLong(chunkRows);
        out.writeInt(chunks);
        for (long[] samples :
                List.of(computeOnlyNs, commOnlyNs, sequentialNs, sequentialGatherNs, pipelinedNs)) {
            writeLongs(out, samples);
        }
        out.writeDouble(progressCpu);
        out.writeBoolean(gatheredExact);
        out.writeBoolean(keptEqual);
        out.writeBoolean(keptWithinBound);
        writeCandidates(out, candidates);
        writeTimeline(out, timeline);
    }

    byte[] toBytes() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            write(out);
        }
        return bytes.toByteArray();
    }

    static RankReport of(byte[] bytes) throws IOException {
        return read(new DataInputStream(new ByteArrayInputStream(bytes)));
    }

    static RankReport read(Path file) throws IOException {
        try (DataInputStream in =
                new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            return read(in);
        }
    }

    private static RankReport read(DataInputStream in) throws IOException {
        return new RankReport(
                in.readUTF(),
                in.readUTF(),
                in.readUTF(),
                in.readInt(),
                in.readInt(),
                in.readLong(),
                in.readInt(),
                readLongs(in),
                readLongs(in),
                readLongs(in),
                readLongs(in),
                readLongs(in),
                in.readDouble(),
                in.readBoolean(),
                in.readBoolean(),
                in.readBoolean(),
                readCandidates(in),
                readTimeline(in));
    }

    private static void writeLongs(DataOutputStream out, long[] values) throws IOException {
        out.writeInt(values.length);
        for (long value : values) {
            out.writeLong(value);
        }
    }

    private static long[] readLongs(DataInputStream in) throws IOException {
        long[] values = new long[in.readInt()];
        for (int i = 0; i < values.length; i++) {
            values[i] = in.readLong();
        }
        return values;
    }

    private static void writeCandidates(DataOutputStream out, List<Candidate> candidates)
            throws IOException {
        out.writeInt(candidates.size());
        for (Candidate candidate : candidates) {
            out.writeByte(candidate.algorithm().ordinal());
            out.writeInt(candidate.chunksPerSource());
            out.writeDouble(candidate.predictedNs());
            out.writeDouble(candidate.measuredNs());
            out.writeBoolean(candidate.chosen());
        }
    }

    private static List<Candidate> readCandidates(DataInputStream in) throws IOException {
        List<Candidate> candidates = new ArrayList<>();
        for (int count = in.readInt(); count > 0; count--) {
            candidates.add(
                    new Candidate(
                            Algorithm.values()[in.readByte()],
                            in.readInt(),
                            in.readDouble(),
                            in.readDouble(),
                            in.readBoolean()));
        }
        return candidates;
    }

    private static void writeTimeline(DataOutputStream out, Timeline timeline) throws IOException {
        out.writeInt(timeline.rank());
        out.writeLong(timeline.startNs());
        out.writeLong(timeline.elapsedNs());
        out.writeInt(timeline.tracks().size());
        for (Timeline.Track track : timeline.tracks()) {
            out.writeUTF(track.name());
            out.writeInt(track.spans().size());
            for (Timeline.Span span : track.spans()) {
                out.writeByte(span.kind().ordinal());
                out.writeInt(span.source());
                out.writeInt(span.peer());
                out.writeInt(span.to());
                out.writeInt(span.chunk());
                out.writeLong(span.firstRow());
                out.writeLong(span.rows());
                out.writeLong(span.bytes());
                out.writeLong(span.startNs());
                out.writeLong(span.endNs());
            }
        }
    }

    private static Timeline readTimeline(DataInputStream in) throws IOException {
        int rank = in.readInt();
        long startNs = in.readLong();
        long elapsedNs = in.readLong();
        int trackCount = in.readInt();
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int t = 0; t < trackCount; t++) {
            String name = in.readUTF();
            int spanCount = in.readInt();
            List<Timeline.Span> spans = new ArrayList<>();
            for (int s = 0; s < spanCount; s++) {
                spans.add(
                        new Timeline.Span(
                                Timeline.Kind.values()[in.readByte()],
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
            tracks.add(new Timeline.Track(name, spans));
        }
        return new Timeline(rank, startNs, elapsedNs, tracks);
    }
}
