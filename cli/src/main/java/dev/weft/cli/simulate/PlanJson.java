package dev.weft.cli.simulate;

import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.List;

/** The plans of all ranks as the field {@code plan} of docs/sweep-record.md. */
record PlanJson(String name, List<Rank> ranks) {

    record Rank(List<Memory> buffers, List<Lane> workers) {

        static Rank of(StepPlan plan) {
            return new Rank(
                    plan.buffers().stream().map(Memory::of).toList(),
                    plan.workers().stream().map(Lane::of).toList());
        }
    }

    record Memory(String name, Buffer.Kind kind, long rows, long cols) {

        static Memory of(Buffer buffer) {
            return new Memory(buffer.name(), buffer.kind(), buffer.rows(), buffer.cols());
        }
    }

    record Lane(Worker.Kind kind, List<Action> steps) {

        static Lane of(Worker worker) {
            return new Lane(worker.kind(), worker.steps().stream().map(Action::of).toList());
        }
    }

    /**
     * @param reads parts: rank, buffer, first row, rows, first column and columns of each
     * @param writes a part; empty for a join
     * @param waits signals: rank, word and value of each
     * @param raises a signal; empty if nobody waits for it
     */
    record Action(
            String step,
            List<List<Long>> reads,
            List<Long> writes,
            boolean resume,
            List<List<Long>> waits,
            List<Long> raises) {

        static Action of(Step step) {
            if (step instanceof Step.Copy copy) {
                return of("copy", List.of(copy.from()), copy.to(), false, step);
            }
            if (step instanceof Step.Multiply multiply) {
                List<Part> factors = List.of(multiply.a(), multiply.b());
                return of("multiply", factors, multiply.into(), multiply.resume(), step);
            }
            if (step instanceof Step.Add add) {
                return of("add", add.addends(), add.into(), false, step);
            }
            return of("join", List.of(), null, false, step);
        }

        private static Action of(
                String name, List<Part> reads, Part writes, boolean resume, Step step) {
            return new Action(
                    name,
                    reads.stream().map(Action::numbers).toList(),
                    writes == null ? List.of() : numbers(writes),
                    resume,
                    step.waits().stream().map(Action::numbers).toList(),
                    step.signal() == null ? List.of() : numbers(step.signal()));
        }

        private static List<Long> numbers(Part part) {
            return List.of(
                    (long) part.rank(),
                    (long) part.buffer(),
                    part.firstRow(),
                    part.rows(),
                    part.firstCol(),
                    part.cols());
        }

        private static List<Long> numbers(Signal signal) {
            return List.of((long) signal.rank(), (long) signal.word(), signal.value());
        }
    }

    static PlanJson of(String name, List<StepPlan> plans) {
        return new PlanJson(name, plans.stream().map(Rank::of).toList());
    }
}
