package dev.weft.cli.run;

import dev.weft.files.PrivateFiles;
import dev.weft.op.Candidate;
import dev.weft.op.Timeline;
import dev.weft.plan.Algorithm;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Path;
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

    /** This report of the first rounds alone. */
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
        PrivateFiles.write(file, toBytes());
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

    /**
     * @throws IOException with one line, where these are not the bytes of a report
     */
    static RankReport of(byte[] bytes) throws IOException {
        return RankReportReader.read(bytes);
    }

    static RankReport read(Path file) throws IOException {
        return of(PrivateFiles.read(file, Integer.MAX_VALUE));
    }

    private static void writeLongs(DataOutputStream out, long[] values) throws IOException {
        out.writeInt(values.length);
        for (long value : values) {
            out.writeLong(value);
        }
    }

    private static void writeCandidates(DataOutputStream out, List<Candidate> candidates)
            throws IOException {
        out.writeInt(candidates.size());
        for (Candidate candidate : candidates) {
            // Auto chooses among Weft's own.
            out.writeByte(Algorithm.of(candidate.algorithm().label()).ordinal());
            out.writeInt(candidate.chunksPerSource());
            out.writeDouble(candidate.predictedNs());
            out.writeDouble(candidate.measuredNs());
            out.writeBoolean(candidate.chosen());
        }
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
}
