package dev.weft.bench.cpu;

import dev.weft.bench.measure.Resources;
import dev.weft.bench.measure.Shape;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.bench.peers.SteppedProcess;
import dev.weft.fabric.World;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Ranks of Weft as processes that multiply and all-reduce, each a {@link ReduceRankCommand}.
 * Between calls they wait for a line, which takes no processor time. Used by one thread.
 */
final class WeftProcesses implements AutoCloseable {

    private final Resources opened = new Resources();
    private final List<SteppedProcess> ranks = new ArrayList<>();

    WeftProcesses(int count, Shape shape, Path folder) throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of("bench", ReduceRankCommand.NAME));
        arguments.addAll(shape.words());
        List<String> command = ChildCommand.weft(arguments, folder).command();
        try {
            ShmJob job = opened.add(ShmJob.create());
            for (int rank = 0; rank < count; rank++) {
                ranks.add(
                        opened.add(
                                SteppedProcess.started(
                                        "rank " + rank,
                                        command,
                                        job.environment(rank, count, World.DEFAULT_DEADLINE),
                                        folder)));
            }
        } catch (IOException | InterruptedException | RuntimeException e) {
            opened.closeAfter(e);
            throw e;
        }
    }

    /** So many calls in a row; the time of one of them, on the slowest rank. */
    long takeNs(int calls) throws IOException, InterruptedException {
        return askAll("s " + calls).stream().mapToLong(Long::parseLong).max().orElseThrow();
    }

    /** Of the product, which all ranks must share. */
    double checksum() throws IOException, InterruptedException {
        List<String> sums = askAll("c");
        if (sums.stream().distinct().count() != 1) {
            throw new IllegalStateException("Weft's ranks have different products: sums " + sums);
        }
        return Double.parseDouble(sums.getFirst());
    }

    /** The name of the plan that they have chosen. */
    String plan() throws IOException, InterruptedException {
        return askAll("p").getFirst();
    }

    private List<String> askAll(String line) throws IOException, InterruptedException {
        for (SteppedProcess rank : ranks) {
            rank.tell(line);
        }
        List<String> answers = new ArrayList<>();
        for (SteppedProcess rank : ranks) {
            answers.add(rank.answer());
        }
        return answers;
    }

    @Override
    public void close() {
        opened.close();
    }
}
