// The ring, step by step: docs/tutorial-ring.md explains every part of this program.
// Run: ./weft java examples/ring/RingTutorial.java [timeline.svg]

import dev.weft.compat.RingAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.Operator;
import dev.weft.trace.View;
import dev.weft.trace.Timeline;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Hosts;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;

static final int RANKS = 4;
static final int M = 512; // rows of A on each rank
static final int K = 4096;
static final int N_LOCAL = 8; // columns of B on each rank

void main(String[] args) throws IOException {
    try (Arena arena = Arena.ofShared();
            World world = World.threads(RANKS)) {
        Matrix a = Matrix.allocate(arena, DType.FP32, RANKS * M, K);
        Matrix b = Matrix.allocate(arena, DType.FP32, K, RANKS * N_LOCAL);
        Random random = new Random(19);
        a.fill(random::nextGaussian);
        b.fill(random::nextGaussian);
        printPlan();
        List<Timeline> timelines =
                world.call(
                        fabric -> {
                            Matrix rows = a.rows(fabric.rank() * M, M);
                            Matrix columns = b.block(0, K, fabric.rank() * N_LOCAL, N_LOCAL);
                            Matrix expected = gatherThenMultiply(fabric, rows, columns, arena);
                            return ring(fabric, rows, columns, expected);
                        });
        if (args.length > 0) {
            Files.writeString(Path.of(args[0]), draw(timelines));
        }
    }
}

/** The two things one after the other: what the ring is compared with. */
Matrix gatherThenMultiply(Fabric fabric, Matrix rows, Matrix columns, Arena arena) {
    Shards shards = Shards.even(RANKS * M, RANKS);
    try (AllGatherMatmul op =
            AllGatherMatmul.on(fabric)
                    .a(shards, rows.dtype())
                    .b(columns)
                    .algorithm(Algorithm.SEQUENTIAL)
                    .prepare()) {
        Matrix c = op.call(rows).product();
        Matrix copy = Matrix.allocate(arena, c.dtype(), c.rows(), c.cols());
        copy.copyFrom(c); // the operator's own memory ends with it
        return copy;
    }
}

/** The steps as data: who sends which fragment to whom, and what is multiplied when. */
void printPlan() {
    Chunks fragments = Chunks.bySplits(Shards.even(RANKS * M, RANKS), K, 1, M);
    GatherRequest wanted = new GatherRequest(fragments, 1, Hosts.one(RANKS), N_LOCAL);
    List<StepPlan> plans = Algorithm.pingPongRing().plans(wanted);
    StepChecker.check(plans, wanted.placement(), wanted.hosts()::shareMemory);
    StepPlan.describe(plans).stream().limit(12).forEach(IO::println);
}

/** One pass round the ring, and a look at what it did. */
Timeline ring(Fabric fabric, Matrix rows, Matrix columns, Matrix expected) {
    try (RingAllGatherMatmul<Matrix> ring =
            RingAllGatherMatmul.prepare(fabric, M, DType.FP32, columns)) {
        Timeline fastest = null;
        long bestNs = Long.MAX_VALUE;
        for (int call = 0; call < 50; call++) {
            fabric.barrier();
            Matrix c = ring.call(rows); // [R, m, N_local]: slot s is the rows of rank s times columns
            if (!c.bitwiseEquals(expected)) {
                throw new IllegalStateException("rank " + fabric.rank() + " differs");
            }
            Timeline timeline = ring.operator().lastResult().timeline();
            long ns = slowest(fabric, timeline.elapsedNs());
            fastest = ns < bestNs ? timeline : fastest;
            bestNs = Math.min(bestNs, ns);
        }
        measure(fabric, ring.operator());
        return fastest;
    }
}

/** The same operator with one half of its work left out. */
void measure(Fabric fabric, Operator<Matrix> operator) {
    for (View view : View.values()) {
        long bestNs = Long.MAX_VALUE;
        for (int call = 0; call < 20; call++) {
            fabric.barrier();
            bestNs = Math.min(bestNs, slowest(fabric, operator.callInPlace(view).elapsedNs()));
        }
        if (fabric.rank() == 0) {
            IO.println(String.format(Locale.ROOT, "%-12s %7.3f ms", view, bestNs / 1e6));
        }
    }
}

/** A call takes as long as its slowest rank. Every rank gets the same answer. */
long slowest(Fabric fabric, long ns) {
    return Arrays.stream(fabric.exchange(ns)).max().orElseThrow();
}

/** Two lines for each rank, its permutes and its products, coloured by whose rows they are. */
String draw(List<Timeline> timelines) {
    String[] colours = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0"};
    long start = timelines.stream().mapToLong(Timeline::startNs).min().orElseThrow();
    long end = timelines.stream().mapToLong(t -> t.startNs() + t.elapsedNs()).max().orElseThrow();
    double scale = 800.0 / (end - start);
    List<String> lines = new ArrayList<>();
    lines.add("<svg xmlns='http://www.w3.org/2000/svg' width='920' height='260' "
            + "font-family='sans-serif' font-size='12'><rect width='920' height='260' fill='white'/>");
    for (Timeline timeline : timelines) {
        for (Timeline.Track track : timeline.tracks()) {
            boolean permutes = track.name().startsWith("lane");
            int y = 10 + 56 * timeline.rank() + (permutes ? 0 : 24);
            if (!permutes && !track.name().startsWith("compute")) {
                continue;
            }
            String what = permutes ? "permute" : "matmul";
            lines.add(text(5, y + 14, "rank " + timeline.rank() + " " + what, "black"));
            for (Timeline.Span span : track.spans()) {
                if (span.kind() == Timeline.Kind.WAIT) {
                    continue;
                }
                double x = 110 + (timeline.startNs() + span.startNs() - start) * scale;
                double width = Math.max(1, (span.endNs() - span.startNs()) * scale);
                lines.add(
                        String.format(
                                Locale.ROOT,
                                "<rect x='%.1f' y='%d' width='%.1f' height='20' fill='%s'/>",
                                x, y, width, colours[span.source()]));
                if (width > 10) {
                    lines.add(text(x + 3, y + 14, "" + span.source(), "white"));
                }
            }
        }
    }
    lines.add(text(110, 250, "0", "black"));
    lines.add(text(855, 250, String.format(Locale.ROOT, "%.2f ms", (end - start) / 1e6), "black"));
    lines.add("</svg>");
    return String.join("\n", lines) + "\n";
}

String text(double x, int y, String text, String colour) {
    return String.format(
            Locale.ROOT, "<text x='%.1f' y='%d' fill='%s'>%s</text>", x, y, colour, text);
}
