package dev.weft.model;

import dev.weft.model.Schedule.Taken;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * What an executor of steps does, as scripts. A caller waits until every peer has started the call
 * before, writes its A, says that it has started, sets its workers to the call and waits for them.
 * A worker takes a step once all its signals have the values of this call. A peer's A is read, and
 * a buffer of a peer without a second copy is written, once that peer has started the call. All
 * other buffers have two copies, which calls use in turn. A mutant breaks this in one place.
 */
final class Protocol {

    private record Place(int rank, int word) {}

    /** A worker, or one step of it. */
    private record WorkerName(int rank, int worker, int step) {}

    /**
     * A thread.
     *
     * @param ended the calls that it has ended
     */
    private record Doer(int rank, Script script, Word ended) {}

    private final Setting setting;
    private final Mutant mutant;
    private final Faults faults;
    private final List<Taken> order;
    private final List<Script> scripts = new ArrayList<>();

    /** By rank. */
    private final List<Doer> callers = new ArrayList<>();

    private final Map<WorkerName, Doer> workers = new LinkedHashMap<>();
    private final List<Word> starts = new ArrayList<>();
    private final List<Word> rounds = new ArrayList<>();
    private final List<Word> finishes = new ArrayList<>();
    private final Map<Place, Word> words = new HashMap<>();
    private final Places places;

    /** By how much the values of signals grow from call to call. */
    private final int stride;

    private Protocol(Setting setting, Mutant mutant, Faults faults) {
        this.setting = setting;
        this.mutant = mutant;
        this.faults = faults;
        this.order = Schedule.of(setting.plans());
        this.places = new Places(setting.shards().totalRows());
        this.stride =
                setting.words().stream()
                        .mapToInt(signal -> Math.toIntExact(signal.value()))
                        .max()
                        .orElse(1);
        addThreads();
        addWords();
        addWriters();
    }

    static Model model(Setting setting, Mutant mutant, Faults faults) {
        return new Protocol(setting, mutant, faults).write();
    }

    private void addThreads() {
        for (StepPlan plan : setting.plans()) {
            int rank = plan.rank();
            callers.add(addThread(rank, "rank %d caller".formatted(rank)));
            for (Taken taken : order) {
                if (taken.rank() == rank) {
                    String step = setting.anyOrder() ? "." + taken.index() : "";
                    String text = "rank %d worker-%d%s".formatted(rank, taken.worker(), step);
                    workers.computeIfAbsent(nameOf(taken), name -> addThread(rank, text));
                }
            }
        }
    }

    private WorkerName nameOf(Taken taken) {
        return new WorkerName(taken.rank(), taken.worker(), setting.anyOrder() ? taken.index() : 0);
    }

    private Doer addThread(int rank, String name) {
        scripts.add(new Script(scripts.size(), name, faults));
        return new Doer(rank, scripts.getLast(), new Word(Word.Role.LOCAL, "end of " + name, 0));
    }

    private void addWords() {
        int before = setting.firstCall() - 1;
        for (int rank = 0; rank < setting.ranks(); rank++) {
            starts.add(new Word(Word.Role.START, "start[" + rank + "]", before));
            rounds.add(new Word(Word.Role.LOCAL, "team[" + rank + "]", before));
            finishes.add(new Word(Word.Role.LOCAL, "finish[" + rank + "]", before));
        }
        for (Signal signal : setting.words()) {
            words.computeIfAbsent(
                    new Place(signal.rank(), signal.word()),
                    place ->
                            new Word(
                                    Word.Role.SIGNAL,
                                    "word[%d][%d]".formatted(place.rank(), place.word()),
                                    before * stride));
        }
    }

    private void addWriters() {
        for (int copy = 0; copy < 2; copy++) {
            for (StepPlan plan : setting.plans()) {
                int caller = callers.get(plan.rank()).script().thread();
                places.addWriter(plan.whole(StepPlan.A), copy, caller, "A");
            }
            for (Taken taken : order) {
                Part to = written(taken.step());
                if (to != null) {
                    int thread = workers.get(nameOf(taken)).script().thread();
                    places.addWriter(to, copy, thread, buffer(to).name());
                }
            }
        }
    }

    private Buffer buffer(Part part) {
        return setting.plans().get(part.rank()).buffers().get(part.buffer());
    }

    /** What a step writes for others to read; null if that is nothing, or only rows of C. */
    private Part written(Step step) {
        Part to = null;
        if (step instanceof Step.Copy copy) {
            to = copy.to();
        } else if (step instanceof Step.Multiply multiply) {
            to = multiply.into();
        } else if (step instanceof Step.Add add) {
            to = add.into();
        }
        return to == null || buffer(to).kind() == Buffer.Kind.C ? null : to;
    }

    private static List<Part> read(Step step) {
        List<Part> parts = new ArrayList<>();
        if (step instanceof Step.Copy copy) {
            parts.add(copy.from());
        } else if (step instanceof Step.Multiply multiply) {
            parts.add(multiply.a());
            if (multiply.resume()) {
                parts.add(multiply.into());
            }
        } else if (step instanceof Step.Add add) {
            parts.addAll(add.addends());
        }
        return parts;
    }

    private Model write() {
        for (int call = 1; call <= setting.calls(); call++) {
            for (int rank = 0; rank < setting.ranks(); rank++) {
                begin(rank, call);
            }
            for (Doer worker : workers.values()) {
                // Workers wait until they are set to the call.
                worker.script().inCall(number(call));
                worker.script().await(rounds.get(worker.rank()), number(call), 1);
            }
            int wait = 0;
            for (Taken taken : order) {
                take(taken, call, wait);
                wait += taken.step().waits().size();
            }
            for (int rank = 0; rank < setting.ranks(); rank++) {
                finish(rank, call);
            }
        }
        scripts.forEach(Script::settle);
        return new Model(scripts, places);
    }

    /** What words hold of a call. */
    private int number(int call) {
        return setting.firstCall() + call - 1;
    }

    private View view(int call) {
        return setting.views().get(call - 1);
    }

    private int copy(Part part, int call) {
        boolean single = part.buffer() > StepPlan.C && buffer(part).single();
        return single || mutant == Mutant.ONE_COPY ? 0 : number(call) & 1;
    }

    private void begin(int rank, int call) {
        Script caller = callers.get(rank).script();
        int number = number(call);
        caller.inCall(number);
        for (int peer = 0; peer < setting.ranks(); peer++) {
            awaitReuse(caller, peer, number);
        }
        if (mutant == Mutant.START_FIRST) {
            caller.raise(starts.get(rank), number);
        }
        Part a = setting.plans().get(rank).whole(StepPlan.A);
        List<Cells> written = new ArrayList<>();
        for (Part part : called(a, call)) {
            written.add(
                    places.written(part, copy(a, call), caller.thread(), part.firstRow(), call));
        }
        caller.copy("write its A", "written its A", Cells.NONE, Cells.NONE, Cells.joined(written));
        if (mutant != Mutant.START_FIRST) {
            caller.raise(starts.get(rank), number);
        }
        caller.raise(rounds.get(rank), number);
    }

    /** What a call has of a rank's rows, or of all rows. */
    private List<Part> called(Part whole, int call) {
        Shards most = setting.shards();
        Shards rows = setting.called().get(call - 1);
        if (whole.rows() != most.totalRows()) {
            return List.of(whole.rows(0, rows.rows(whole.rank())));
        }
        return IntStream.range(0, most.ranks())
                .mapToObj(r -> whole.rows(most.firstRow(r), rows.rows(r)))
                .toList();
    }

    /** How many of a step's rows a call has: the first ones of their shard. */
    private long calledRows(Step step, int call) {
        Shards most = setting.shards();
        Part part = read(step).getFirst();
        int source = 0;
        while (most.firstRow(source) + most.rows(source) <= firstRow(step)) {
            source++;
        }
        long first = firstRow(step) - most.firstRow(source);
        long rows = setting.called().get(call - 1).rows(source);
        return Math.clamp(rows - first, 0, part.rows());
    }

    private void awaitReuse(Script caller, int peer, int number) {
        switch (mutant) {
            case OWN_CALL_ONLY -> {}
            case REUSE_OFF_BY_ONE -> caller.await(starts.get(peer), number - 2, 1);
            case FINISH_WORD -> caller.await(finishes.get(peer), number - 2, 1);
            default -> caller.await(starts.get(peer), number - 1, 1);
        }
    }

    private void take(Taken taken, int call, int firstWait) {
        Step step = taken.step();
        boolean multiplies = step instanceof Step.Multiply;
        if (view(call) == View.COMPUTE_ONLY && !(multiplies && isOwnA(step, taken.rank()))) {
            return;
        }
        Script script = workers.get(nameOf(taken)).script();
        if (view(call) != View.COMPUTE_ONLY) {
            awaitStarts(script, taken, call);
            awaitSignals(script, step, call, firstWait);
        }
        boolean raises = step.signal() != null && view(call) != View.COMPUTE_ONLY;
        if (raises && mutant.signalsFirst(step)) {
            raise(script, step.signal(), call);
        }
        // Without products, sums move whatever lies there.
        boolean computes = multiplies || step instanceof Step.Add;
        if (!computes || view(call) != View.COMM_ONLY) {
            work(script, step, call);
        }
        if (raises && !mutant.signalsFirst(step)) {
            raise(script, step.signal(), call);
        }
    }

    private boolean isOwnA(Step step, int rank) {
        Part a = ((Step.Multiply) step).a();
        return a.rank() == rank && a.buffer() == StepPlan.A;
    }

    private void awaitStarts(Script script, Taken taken, int call) {
        for (Part part : read(taken.step())) {
            boolean ofPeer = part.rank() != taken.rank() && part.buffer() == StepPlan.A;
            if (ofPeer && mutant != Mutant.START_IGNORED) {
                script.await(starts.get(part.rank()), number(call), 1);
            }
        }
        Part to = written(taken.step());
        boolean single = to != null && to.rank() != taken.rank() && buffer(to).single();
        if (single && mutant != Mutant.SINGLE_EARLY) {
            script.await(starts.get(to.rank()), number(call), 1);
        }
    }

    private void awaitSignals(Script script, Step step, int call, int firstWait) {
        for (int i = 0; i < step.waits().size(); i++) {
            Signal wait = step.waits().get(i);
            if (!faults.isForgotten(firstWait + i) && !mutant.ignoresWaits(step)) {
                int value = value(wait, call) - (mutant == Mutant.VALUE_LOWERED ? 1 : 0);
                int mostAhead = 2 * stride - Math.toIntExact(wait.value());
                script.await(word(wait), value, mostAhead);
            }
        }
    }

    private int value(Signal signal, int call) {
        return (number(call) - 1) * stride + Math.toIntExact(signal.value());
    }

    private Word word(Signal signal) {
        return words.get(new Place(signal.rank(), signal.word()));
    }

    private void raise(Script script, Signal signal, int call) {
        script.raise(word(signal), value(signal, call));
    }

    private void work(Script script, Step step, int call) {
        long rows = step instanceof Step.Join ? 0 : calledRows(step, call);
        if (rows == 0) {
            return;
        }
        Part whole = written(step);
        Part to = whole == null ? null : whole.rows(0, rows);
        List<Part> from = new ArrayList<>();
        read(step).forEach(part -> from.add(part.rows(0, rows)));
        if (view(call) == View.COMM_ONLY && step instanceof Step.Copy copy && !movesRows(copy)) {
            from.clear();
        }
        if (to == null) {
            script.read(describe(step), cells(from, call, -1));
            return;
        }
        // Whoever was to write there before must have, and nobody after.
        List<Part> both = new ArrayList<>(from);
        both.add(to);
        script.copy(
                "write " + describe(step),
                "written " + describe(step),
                cells(from, call, -1),
                cells(both, call, script.thread()),
                places.written(to, copy(to, call), script.thread(), firstRow(step), call));
    }

    private boolean movesRows(Step.Copy copy) {
        return buffer(copy.from()).holdsRows();
    }

    private Cells cells(List<Part> parts, int call, int except) {
        List<History> all = new ArrayList<>();
        List<Integer> tags = new ArrayList<>();
        for (Part part : parts) {
            Cells some = places.read(part, copy(part, call), except);
            all.addAll(some.cells());
            tags.addAll(some.tags());
        }
        return new Cells(all, tags);
    }

    private static long firstRow(Step step) {
        if (step instanceof Step.Copy copy) {
            return copy.firstRow();
        }
        return step instanceof Step.Multiply multiply
                ? multiply.firstRow()
                : ((Step.Add) step).firstRow();
    }

    private static String describe(Step step) {
        String row = "row " + firstRow(step);
        if (step instanceof Step.Copy copy) {
            return "the copy of %s from rank %d to rank %d"
                    .formatted(row, copy.from().rank(), copy.to().rank());
        }
        return (step instanceof Step.Multiply ? "the product of " : "the sum of ") + row;
    }

    /** The caller waits for the workers, and may read what was gathered until it calls again. */
    private void finish(int rank, int call) {
        Script caller = callers.get(rank).script();
        for (Doer worker : workers.values()) {
            if (worker.rank() == rank) {
                worker.script().end(worker.ended(), call);
                caller.await(worker.ended(), call, 1);
            }
        }
        if (mutant == Mutant.FINISH_WORD) {
            caller.raise(finishes.get(rank), number(call));
        }
        if (view(call) == View.COMPUTE_ONLY) {
            return;
        }
        StepPlan plan = setting.plans().get(rank);
        List<Part> gathered = new ArrayList<>();
        for (int b = StepPlan.C + 1; b < plan.buffers().size(); b++) {
            Buffer buffer = plan.buffers().get(b);
            if (buffer.kind() == Buffer.Kind.ROWS && !buffer.single()) {
                gathered.addAll(called(plan.whole(b), call));
            }
        }
        caller.read("what was gathered", cells(gathered, call, -1));
    }
}
