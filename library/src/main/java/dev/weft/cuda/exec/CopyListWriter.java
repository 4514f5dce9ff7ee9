package dev.weft.cuda.exec;

import static java.util.Comparator.comparingLong;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.exec.CopyList.Launch;
import dev.weft.cuda.exec.CopyList.Line;
import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.kernel.Origin;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Compiles the steps of gathers: see {@link CopyList}. Used once. */
final class CopyListWriter {

    private final List<StepPlan> plans;
    private final int rank;
    private final Chunks chunks;
    private final Shards shards;

    private final DeviceSteps steps;

    private final Map<Signal, Raised> raised = new HashMap<>();

    /** What raises a signal of a copy to this rank. */
    private final Map<Signal, Copy> arrivals = new HashMap<>();

    private final List<Origin> origins = new ArrayList<>();

    /** By flag of a chunk that is cut: its rows that are multiplied together. */
    private final Map<Integer, List<CutRows>> cuts = new HashMap<>();

    /** Rows of a chunk, and the pieces that bring them. */
    private record CutRows(long firstRow, long rows, List<Piece> pieces, boolean narrow) {}

    CopyListWriter(List<StepPlan> plans, int rank, Chunks chunks) {
        // Written when they are asked for.
        this.plans = List.copyOf(plans);
        this.rank = rank;
        this.chunks = chunks;
        this.shards = chunks.shards();
        this.steps = new DeviceSteps(this.plans);
        for (int source = 0; source < shards.ranks(); source++) {
            for (int chunk = 0; chunk < chunks.count(source); chunk++) {
                origins.add(new Origin(source, chunk));
            }
        }
        this.plans.forEach(this::index);
    }

    CopyList write(ArrivalCut cut) {
        StepPlan plan = plans.get(rank);
        List<List<Copy>> lanes = new ArrayList<>();
        for (List<Step.Copy> lane : lanes(plan)) {
            lanes.add(lane.stream().map(step -> copy(step, waits(step))).toList());
        }
        List<RowRange> whole = products(plan).stream().map(this::range).toList();
        if (cut != null && !lanes.isEmpty()) {
            checkFits(cut, lanes, whole);
            lanes = List.of(cut(lanes.getFirst(), cut));
        }
        return new CopyList(
                rank,
                lanes,
                arriving(lanes),
                whole.stream().flatMap(this::cut).toList(),
                sharesBuffers(plan) ? launches(plan) : List.of(),
                origins);
    }

    private void index(StepPlan plan) {
        List<List<Step.Copy>> lanes = lanes(plan);
        for (int lane = 0; lane < lanes.size(); lane++) {
            for (Step.Copy step : lanes.get(lane)) {
                if (step.signal() == null) {
                    continue;
                }
                raised.put(step.signal(), raised(step, plan.rank(), lane));
                if (step.to().rank() == rank) {
                    arrivals.put(step.signal(), copy(step, List.of()));
                }
            }
        }
        if (sharesBuffers(plan)) {
            List<List<Step.Multiply>> runs = runs(plan);
            for (int i = 0; i < runs.size(); i++) {
                Raised launch =
                        new Raised(
                                plan.rank(),
                                chunks.total() + i,
                                plan.rank(),
                                Raised.PRODUCT,
                                slot(runs.get(i).getFirst().a()) & 1,
                                Awaited.of(Awaited.BUFFER, plan.rank()));
                runs.get(i).forEach(step -> raised.put(step.signal(), launch));
            }
        }
    }

    private Raised raised(Step.Copy step, int by, int lane) {
        int flag = flag(step, chunks);
        Origin origin = origins.get(flag);
        int from = step.from().rank();
        return new Raised(
                step.to().rank(),
                flag,
                by,
                lane,
                slot(step.to()) & 1,
                Awaited.chunk(from, origin.source(), origin.chunk()));
    }

    private static List<List<Step.Copy>> lanes(StepPlan plan) {
        List<List<Step.Copy>> lanes = new ArrayList<>();
        for (Worker worker : plan.workers()) {
            boolean joins = worker.steps().stream().anyMatch(step -> step instanceof Step.Join);
            if (worker.kind() == Worker.Kind.MOVER && !joins) {
                lanes.add(worker.steps().stream().map(step -> (Step.Copy) step).toList());
            }
        }
        return lanes;
    }

    /** Those of all programs, shard by shard: none waits for what comes to another one later. */
    private List<Step.Multiply> products(StepPlan plan) {
        List<Deque<Step.Multiply>> programs = new ArrayList<>();
        for (Worker worker : plan.workers()) {
            Deque<Step.Multiply> program = new ArrayDeque<>();
            for (Step step : worker.steps()) {
                if (step instanceof Step.Multiply multiply) {
                    program.add(multiply);
                }
            }
            if (!program.isEmpty()) {
                programs.add(program);
            }
        }
        int[][] left = new int[programs.size()][shards.ranks()];
        for (int p = 0; p < left.length; p++) {
            for (Step.Multiply step : programs.get(p)) {
                left[p][source(step.firstRow())]++;
            }
        }
        List<Step.Multiply> all = new ArrayList<>();
        for (int source = next(programs, left); source >= 0; source = next(programs, left)) {
            for (int p = 0; p < left.length; p++) {
                if (isNext(source, programs.get(p))) {
                    all.add(programs.get(p).remove());
                    left[p][source]--;
                }
            }
        }
        return all;
    }

    private boolean isNext(int source, Deque<Step.Multiply> program) {
        return !program.isEmpty() && source(program.peek().firstRow()) == source;
    }

    /** A shard that is next wherever it is left, or any that is next; -1 if nothing is left. */
    private int next(List<Deque<Step.Multiply>> programs, int[][] left) {
        int first = -1;
        for (Deque<Step.Multiply> program : programs) {
            if (!program.isEmpty()) {
                int source = source(program.peek().firstRow());
                first = first < 0 ? source : first;
                boolean everywhere = true;
                for (int p = 0; p < left.length; p++) {
                    everywhere &= left[p][source] == 0 || isNext(source, programs.get(p));
                }
                if (everywhere) {
                    return source;
                }
            }
        }
        return first;
    }

    /** Whether shards that arrive use the same memory one after the other. */
    private static boolean sharesBuffers(StepPlan plan) {
        return plan.buffers().stream()
                .anyMatch(buffer -> buffer.kind() == Buffer.Kind.ROWS && buffer.single());
    }

    /**
     * Products by shard, whichever programs they are of. Nothing overwrites a part of a shard
     * before all of it is multiplied, so nobody waits longer for a whole shard than for a part.
     */
    private List<List<Step.Multiply>> runs(StepPlan plan) {
        Map<Integer, List<Step.Multiply>> bySource = new LinkedHashMap<>();
        for (Step.Multiply step : products(plan)) {
            if (step.into().rows() > 0) {
                bySource.computeIfAbsent(source(step.firstRow()), s -> new ArrayList<>()).add(step);
            }
        }
        return List.copyOf(bySource.values());
    }

    private List<Launch> launches(StepPlan plan) {
        List<Launch> launches = new ArrayList<>();
        for (List<Step.Multiply> run : runs(plan)) {
            Step.Multiply first = run.getFirst();
            List<RowRange> ranges =
                    run.stream()
                            .map(this::range)
                            .sorted(comparingLong(RowRange::sourceRow))
                            .toList();
            launches.add(
                    new Launch(
                            source(first.firstRow()),
                            slot(first.a()),
                            CopyList.merged(ranges),
                            run.stream().flatMap(s -> waits(s).stream()).distinct().toList()));
        }
        return launches;
    }

    private int source(long row) {
        return DeviceSteps.source(row, shards);
    }

    /** The tag of the chunk that a copy moves. */
    static int flag(Step.Copy step, Chunks chunks) {
        int source = DeviceSteps.source(step.firstRow(), chunks.shards());
        long row = step.firstRow() - chunks.shards().firstRow(source);
        long chunk =
                row / chunks.chunkRows(source) * chunks.colChunks()
                        + step.to().firstCol() / chunks.chunkCols();
        return chunks.tag(source, Math.toIntExact(chunk));
    }

    /** Which of the buffers that shards share a part is in; 0 if it is in none of them. */
    private int slot(Part part) {
        List<Buffer> buffers = plans.get(part.rank()).buffers();
        int slot = 0;
        for (int i = 0; i < part.buffer(); i++) {
            slot += buffers.get(i).kind() == Buffer.Kind.ROWS ? 1 : 0;
        }
        return buffers.get(part.buffer()).single() ? slot : 0;
    }

    private Copy copy(Step.Copy step, List<Raised> waits) {
        int source = source(step.firstRow());
        return new Copy(
                step.from().rank(),
                step.to().rank(),
                source,
                step.firstRow() - shards.firstRow(source),
                step.to().rows(),
                step.to().firstCol(),
                step.to().cols(),
                flag(step, chunks),
                slot(step.from()),
                slot(step.to()),
                waits);
    }

    private List<Raised> waits(Step step) {
        return step.waits().stream()
                .flatMap(steps::awaited)
                .map(
                        signal -> {
                            Raised one = raised.get(signal);
                            if (one == null) {
                                throw new IllegalArgumentException(
                                        "%s is raised by no copy and no product: expected one that a GPU can wait for"
                                                .formatted(signal));
                            }
                            return one;
                        })
                .distinct()
                .toList();
    }

    /** Rows that wait for a join are multiplied after everything, and not as they come. */
    private RowRange range(Step.Multiply step) {
        int source = source(step.firstRow());
        boolean gated = step.waits().stream().noneMatch(steps::isJoin);
        List<Piece> pieces =
                gated
                        ? step.waits().stream().map(arrivals::get).map(Copy::piece).toList()
                        : List.of();
        return new RowRange(
                source,
                step.firstRow() - shards.firstRow(source),
                step.into().firstRow(),
                step.into().rows(),
                pieces,
                false);
    }

    private List<Line> arriving(List<List<Copy>> own) {
        List<Line> lines = new ArrayList<>();
        for (int lane = 0; lane < own.size(); lane++) {
            lines.add(
                    new Line(
                            rank,
                            lane,
                            own.get(lane).stream().filter(copy -> copy.to() == rank).toList()));
        }
        for (StepPlan peer : plans) {
            List<List<Step.Copy>> lanes = peer.rank() == rank ? List.of() : lanes(peer);
            for (int lane = 0; lane < lanes.size(); lane++) {
                List<Copy> copies =
                        lanes.get(lane).stream()
                                .filter(step -> step.to().rank() == rank)
                                .map(step -> copy(step, List.of()))
                                .toList();
                lines.add(new Line(peer.rank(), lane, copies));
            }
        }
        lines.removeIf(line -> line.copies().isEmpty());
        return lines;
    }

    /** A cut knows chunks by their turn, so they must come one by one and be multiplied so. */
    private static void checkFits(ArrivalCut cut, List<List<Copy>> lanes, List<RowRange> ranges) {
        long arriving = lanes.stream().mapToLong(List::size).sum();
        boolean oneByOne =
                ranges.stream()
                        .allMatch(
                                range ->
                                        range.pieces().isEmpty()
                                                || range.pieces().size() == 1
                                                        && range.pieces().getFirst().rows()
                                                                == range.rows());
        long gated = ranges.stream().filter(range -> !range.pieces().isEmpty()).count();
        if (!oneByOne || lanes.size() > 1 || arriving != cut.chunks().size() || gated != arriving) {
            throw new IllegalArgumentException(
                    ("a cut of %s chunks for %s that arrive on %s lanes: expected one lane,"
                                    + " a block for each chunk, and as many chunks")
                            .formatted(cut.chunks().size(), arriving, lanes.size()));
        }
    }

    private List<Copy> cut(List<Copy> lane, ArrivalCut cut) {
        List<Copy> copies = new ArrayList<>();
        for (int i = 0; i < lane.size(); i++) {
            Copy whole = lane.get(i);
            long row = whole.firstRow();
            List<CutRows> cutRows = new ArrayList<>();
            for (ArrivalCut.Block block : cut.chunks().get(i)) {
                List<Piece> pieces = new ArrayList<>();
                long col = 0;
                for (long cols : block.cols()) {
                    // The first piece takes the chunk's own flag.
                    boolean first = cutRows.isEmpty() && pieces.isEmpty();
                    int flag = first ? whole.flag() : origins.size();
                    if (!first) {
                        origins.add(origins.get(whole.flag()));
                    }
                    pieces.add(new Piece(row, block.rows(), col, flag));
                    copies.add(whole.part(pieces.getLast(), cols));
                    col += cols;
                }
                cutRows.add(new CutRows(row, block.rows(), pieces, block.narrow()));
                row += block.rows();
            }
            cuts.put(whole.flag(), cutRows);
        }
        return copies;
    }

    /** The range as its chunk is cut. */
    private Stream<RowRange> cut(RowRange range) {
        List<CutRows> cutRows =
                range.pieces().isEmpty() ? null : cuts.get(range.pieces().getFirst().flag());
        if (cutRows == null) {
            return Stream.of(range);
        }
        return cutRows.stream()
                .map(
                        rows ->
                                new RowRange(
                                        range.source(),
                                        rows.firstRow(),
                                        shards.firstRow(range.source()) + rows.firstRow(),
                                        rows.rows(),
                                        rows.pieces(),
                                        rows.narrow()));
    }
}
