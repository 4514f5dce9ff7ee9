package dev.weft.sim;

import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;

/**
 * The steps of a rank as the simulation runs them: with words for signals, and only their sizes.
 */
final class Tasks {

    /** A word that a step raises, and to what. */
    record Raise(Word word, long value) {}

    /**
     * @param step null if no spans are wanted
     * @param raise null for nothing
     */
    record CopyTask(
            int from,
            int to,
            double bytes,
            long endRow,
            long cols,
            Waits waits,
            Raise raise,
            Step.Copy step) {}

    /**
     * Products of the same rows with consecutive parts of K, each continuing the sums of the one
     * before.
     *
     * @param firstRow as {@link Word#endRow} counts
     * @param owner the rank whose rows of A they are; -1 if several have them
     * @param step the first of them; null if no spans are wanted
     */
    record ProductTask(
            long firstRow,
            long rows,
            List<Long> parts,
            List<Long> columns,
            boolean resume,
            Buffer.Kind into,
            Buffer.Kind from,
            long leastRows,
            int owner,
            Waits waits,
            List<Raise> raises,
            Step.Multiply step) {

        double k() {
            double all = 0;
            for (long part : parts) {
                all += part;
            }
            return all;
        }

        boolean isSummed() {
            return into != Buffer.Kind.C;
        }
    }

    /**
     * @param additions of each element
     * @param finishes whether sums become elements of C
     */
    record AddTask(
            double elements,
            int additions,
            boolean finishes,
            Waits waits,
            Raise raise,
            Step.Add step) {}

    private final Simulation simulation;
    private final StepPlan plan;

    /** Whether rows of A arrive in several buffers, used in turn. */
    final boolean usesBuffersInTurn;

    Tasks(Simulation simulation, StepPlan plan) {
        this.simulation = simulation;
        this.plan = plan;
        this.usesBuffersInTurn =
                plan.buffers().stream().filter(b -> b.kind() == Buffer.Kind.ROWS).count() > 1;
    }

    CopyTask copy(Step.Copy step) {
        Part to = step.to();
        Buffer.Kind kind = kind(to.rank() == plan.rank() ? to : step.from());
        double elements = (double) to.rows() * to.cols();
        return new CopyTask(
                step.from().rank(),
                to.rank(),
                elements * bytes(kind),
                simulation.inShard(step.firstRow()) + to.rows(),
                to.cols(),
                waits(step),
                raise(step.signal()),
                simulation.sink == null ? null : step);
    }

    private int bytes(Buffer.Kind kind) {
        return switch (kind) {
            case A, B, ROWS -> simulation.scenario.aType().bytes();
            case C -> simulation.scenario.outType().bytes();
            case SUMS -> Float.BYTES;
            case ROUNDED_SUMS -> Short.BYTES;
        };
    }

    /** The product that begins with step {@code first}; it has as many steps as parts. */
    ProductTask product(List<Step> steps, int first) {
        Step.Multiply multiply = (Step.Multiply) steps.get(first);
        List<Long> parts = new ArrayList<>();
        List<Raise> raises = new ArrayList<>();
        List<Signal> own = new ArrayList<>();
        for (int i = first; i < steps.size() && continues(multiply, own, steps.get(i)); i++) {
            parts.add(((Step.Multiply) steps.get(i)).a().cols());
            if (steps.get(i).signal() != null) {
                own.add(steps.get(i).signal());
                raises.add(raise(steps.get(i).signal()));
            }
        }
        Part a = multiply.a();
        boolean inPlace = a.rank() != plan.rank();
        return new ProductTask(
                simulation.inShard(multiply.firstRow()),
                a.rows(),
                parts.size() == 1 ? List.of(parts.getFirst()) : List.copyOf(parts),
                columns(multiply.b()),
                multiply.resume() && simulation.view != View.COMPUTE_ONLY,
                kind(multiply.into()),
                inPlace ? Buffer.Kind.A : kind(a),
                simulation.view == View.PIPELINED ? multiply.leastRows() : 0,
                simulation.owner(multiply.firstRow()),
                waits(multiply),
                List.copyOf(raises),
                simulation.sink == null ? null : multiply);
    }

    /** Whether a step is the first product, or waits for nothing but those before it. */
    private static boolean continues(Step.Multiply first, List<Signal> own, Step step) {
        return step == first
                || step instanceof Step.Multiply next
                        && next.resume()
                        && next.into().equals(first.into())
                        && !own.isEmpty()
                        && own.containsAll(next.waits());
    }

    /** The columns of each product that are among those of {@code b}. */
    private List<Long> columns(Part b) {
        List<Long> all = simulation.scenario.columns();
        long total = 0;
        for (long n : all) {
            total += n;
        }
        if (b.firstCol() == 0 && b.cols() == total) {
            return all;
        }
        List<Long> some = new ArrayList<>();
        long before = 0;
        for (long n : all) {
            long first = Math.max(b.firstCol(), before);
            long end = Math.min(b.firstCol() + b.cols(), before + n);
            if (end > first) {
                some.add(end - first);
            }
            before += n;
        }
        return some;
    }

    AddTask add(Step.Add step) {
        boolean isPriced = simulation.view == View.PIPELINED;
        return new AddTask(
                isPriced ? (double) step.into().rows() * step.into().cols() : 0,
                step.addends().size() - 1,
                kind(step.into()) == Buffer.Kind.C,
                waits(step),
                raise(step.signal()),
                simulation.sink == null ? null : step);
    }

    private Buffer.Kind kind(Part part) {
        return plan.buffers().get(part.buffer()).kind();
    }

    Waits waits(Step step) {
        int count = step.waits().size();
        if (count == 0 || simulation.view == View.COMPUTE_ONLY) {
            return Waits.NONE;
        }
        Word[] words = new Word[count];
        long[] values = new long[count];
        for (int i = 0; i < count; i++) {
            words[i] = simulation.word(step.waits().get(i));
            values[i] = step.waits().get(i).value();
        }
        return new Waits(words, values);
    }

    /**
     * @param signal null for none
     */
    Raise raise(Signal signal) {
        return signal == null ? null : new Raise(simulation.word(signal), signal.value());
    }
}
