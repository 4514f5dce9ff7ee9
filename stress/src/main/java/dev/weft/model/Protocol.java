package dev.weft.model;

import dev.weft.model.Memory.Rows;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Storage;
import java.util.ArrayList;
import java.util.List;

/**
 * The operators' protocol as scripts: what {@code AllGatherMatmul} and {@code ReduceOperator} do on
 * the caller's thread is here, what their workers do is in {@link LaneScripts} and {@link
 * ComputeScripts}, and in {@link SumScripts}. A mutant breaks it in one place.
 */
final class Protocol {

    private final Setting setting;
    private final Mutant mutant;
    private final List<Script> scripts = new ArrayList<>();

    /** Of every worker: the calls that it has ended. */
    private final List<OwnedWord> ended = new ArrayList<>();

    private final WordTable words;
    private final Memory memory;
    private final SumCells cells;

    private Protocol(Setting setting, Mutant mutant, SignalFaults signals) {
        this.setting = setting;
        this.mutant = mutant;
        int[] callers = new int[setting.ranks()];
        for (RankPlan plan : setting.plans()) {
            String rank = "rank " + plan.rank();
            callers[plan.rank()] = scripts.size();
            addThread(rank + " caller", signals);
            for (int lane = 0; lane < plan.lanes().size(); lane++) {
                addThread(rank + " lane-" + lane, signals);
            }
            for (int worker = 0; worker < workers(plan); worker++) {
                addThread(rank + " compute-" + worker, signals);
            }
        }
        words = new WordTable(setting, scripts.size(), callers);
        memory = new Memory(setting);
        cells = new SumCells(setting);
    }

    private void addThread(String name, SignalFaults signals) {
        scripts.add(new Script(scripts.size(), name, signals));
        ended.add(new OwnedWord(Word.Kind.LOCAL, "end of " + name, 0, setting.calls()));
    }

    private int workers(RankPlan plan) {
        if (!setting.anyWorkers()) {
            return 1;
        }
        return setting.sums() ? SumScripts.items(plan) : plan.consumption().size();
    }

    static Model model(Setting setting, Mutant mutant, SignalFaults signals) {
        return new Protocol(setting, mutant, signals).write();
    }

    private Model write() {
        for (int call = 1; call <= setting.calls(); call++) {
            int thread = 0;
            for (RankPlan plan : setting.plans()) {
                thread = writeCall(plan, call, thread);
            }
        }
        scripts.forEach(Script::settle);
        return new Model(scripts, memory);
    }

    /** One rank's threads in one call; returns the next rank's first thread. */
    private int writeCall(RankPlan plan, int call, int callerThread) {
        Script caller = scripts.get(callerThread);
        Call context = new Call(this, plan, call);
        begin(caller, context);
        int worker = callerThread + 1;
        for (Lane lane : plan.lanes()) {
            Script script = enter(worker++, context);
            if (setting.sums()) {
                new SumScripts(context).lane(script, lane);
            } else {
                new LaneScripts(context).write(script, lane);
            }
            leave(script, context, caller);
        }
        int workers = workers(plan);
        for (int w = 0; w < workers; w++) {
            Script script = enter(worker++, context);
            if (setting.sums()) {
                new SumScripts(context).compute(script, w, workers);
            } else {
                new ComputeScripts(context).write(script, w, workers);
            }
            leave(script, context, caller);
        }
        finish(caller, context);
        return worker;
    }

    /** Workers wait until they are set to the call. */
    private Script enter(int thread, Call context) {
        Script script = scripts.get(thread);
        script.inCall(context.number());
        script.await(words.round(context.rank()), context.number());
        return script;
    }

    private void leave(Script script, Call context, Script caller) {
        script.end(ended.get(script.thread()), context.index());
        caller.await(ended.get(script.thread()), context.index());
    }

    private void begin(Script caller, Call context) {
        int number = context.number();
        int rank = context.rank();
        caller.inCall(number);
        for (int peer = 0; peer < setting.ranks(); peer++) {
            awaitReuse(caller, peer, number);
        }
        if (mutant == Mutant.START_FIRST) {
            caller.raise(words.start(rank), number);
        }
        if (setting.sums()) {
            new SumScripts(context).input(caller);
        } else {
            Rows all = context.allRows(rank);
            Part shard = memory.shard(rank, context.slot(), context.index(), all);
            caller.copy("write its shard", "written its shard", Part.NONE, shard);
        }
        if (context.pingPong()) {
            caller.begin(words.release(rank), context.uses());
        }
        if (mutant != Mutant.START_FIRST) {
            caller.raise(words.start(rank), number);
        }
        caller.raise(words.round(rank), number);
    }

    private void awaitReuse(Script caller, int peer, int number) {
        switch (mutant) {
            case OWN_CALL_ONLY -> {}
            case REUSE_OFF_BY_ONE -> caller.await(words.start(peer), number - 2);
            case FINISH_WORD -> caller.await(words.finish(peer), number - 2);
            default -> caller.await(words.start(peer), number - 1);
        }
    }

    /**
     * The caller has waited for the workers; it may read what was gathered until it calls again.
     */
    private void finish(Script caller, Call context) {
        int rank = context.rank();
        if (mutant == Mutant.FINISH_WORD) {
            caller.raise(words.finish(rank), context.number());
        }
        if (!setting.keeps(Storage.GATHERED) || context.view() == View.COMPUTE_ONLY) {
            return;
        }
        List<History> cells = new ArrayList<>();
        List<Integer> tags = new ArrayList<>();
        for (int source = 0; source < setting.ranks(); source++) {
            if (source != rank) {
                Rows all = context.allRows(source);
                Part part = memory.landing(rank, context.slot(), source, context.index(), all);
                cells.addAll(part.cells());
                tags.addAll(part.tags());
            }
        }
        caller.read("what was gathered", new Part(cells, tags));
    }

    Setting setting() {
        return setting;
    }

    Mutant mutant() {
        return mutant;
    }

    WordTable words() {
        return words;
    }

    Memory memory() {
        return memory;
    }

    SumCells cells() {
        return cells;
    }
}
