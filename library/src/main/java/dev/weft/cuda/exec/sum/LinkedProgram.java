package dev.weft.cuda.exec.sum;

import dev.weft.cuda.exec.DevicePeers.Raised;
import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.exec.DeviceSteps.RowSum;
import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * One rank's steps of sums as work that is queued on one stream, if the ranks read each other's
 * memory. Steps of a kind that can be taken at once are one item, and rows side by side are one
 * piece of it. Everybody queues items in an order that is possible for all, so nobody waits for
 * what is queued later. Pure.
 *
 * @param items in the order in which they are queued
 * @param arriving items of other ranks that write to this rank's memory
 * @param mostItems of any rank
 */
record LinkedProgram(List<Item> items, List<Raised> arriving, int mostItems) {

    /**
     * Work that is queued at once; one of the three lists has elements.
     *
     * @param waits items of other ranks that come first
     * @param awaited whether other ranks wait for it
     */
    record Item(
            List<Product> products,
            List<RowSum> sums,
            List<RowSum> moves,
            List<Raised> waits,
            boolean awaited) {}

    /**
     * Rows that are multiplied over some ranks' parts of K, in this order.
     *
     * @param firstRow of A and of C
     */
    record Product(List<Integer> parts, long firstRow, Part into) {}

    /**
     * @param finishes whether a product may write whole sums to C itself
     */
    static LinkedProgram of(List<StepPlan> plans, int rank, boolean finishes) {
        return new Compiler(plans, finishes).program(rank);
    }

    private static final class Compiler {

        private final List<StepPlan> plans;
        private final DeviceSteps steps;

        /** By rank: what it takes at once, one after the other. */
        private final List<List<List<Step>>> taken = new ArrayList<>();

        /** By signal: the number of the item that raises it, at the rank that does. */
        private final Map<Signal, Integer> items = new HashMap<>();

        /** By rank and worker: the next step. */
        private final List<int[]> next = new ArrayList<>();

        /** The steps that finish sums which a product writes to C itself, by what they add. */
        private final Map<Part, Step.Add> finished = new HashMap<>();

        Compiler(List<StepPlan> plans, boolean finishes) {
            this.plans = plans;
            this.steps = new DeviceSteps(plans);
            for (StepPlan plan : plans) {
                DeviceSteps.of(plan).forEach(step -> checkFits(plan, step, finishes));
            }
            for (StepPlan plan : plans) {
                taken.add(new ArrayList<>());
                next.add(new int[plan.workers().size()]);
            }
            if (finishes) {
                findFinished();
            }
            while (takeAll(Step.Multiply.class)
                    | takeAll(Step.Add.class)
                    | takeAll(Step.Copy.class)) {
                // Goes on until nothing is left that could be taken.
            }
            for (StepPlan plan : plans) {
                for (int w = 0; w < plan.workers().size(); w++) {
                    if (next.get(plan.rank())[w] < plan.workers().get(w).steps().size()) {
                        throw new IllegalArgumentException(
                                "rank %d waits for what never comes: expected a plan that was checked"
                                        .formatted(plan.rank()));
                    }
                }
            }
        }

        /** Refuses what the kernels do not do. */
        private void checkFits(StepPlan plan, Step step, boolean finishes) {
            boolean fits = true;
            if (step instanceof Step.Multiply multiply) {
                Part a = multiply.a();
                fits =
                        isWhole(a, StepPlan.A)
                                && isWhole(multiply.b(), StepPlan.B)
                                && a.firstRow() == multiply.firstRow()
                                && isSums(multiply.into())
                                && (finishes || multiply.into().buffer() != StepPlan.C);
            } else if (step instanceof Step.Add add) {
                fits = isSums(add.into()) && add.addends().stream().allMatch(this::isSums);
            } else if (step instanceof Step.Copy copy) {
                fits = isSums(copy.from()) && isSums(copy.to());
            }
            if (!fits) {
                throw new IllegalArgumentException(
                        "rank %d: %s: on GPUs expected whole rows of A by all of a B, and whole rows of sums"
                                .formatted(plan.rank(), step));
            }
        }

        /** Whether a part has all columns of a buffer that the caller passes. */
        private boolean isWhole(Part part, int buffer) {
            long cols = plans.get(part.rank()).buffers().get(part.buffer()).cols();
            return part.buffer() == buffer && part.cols() == cols;
        }

        /** Whether a part has all columns of sums, or of C. */
        private boolean isSums(Part part) {
            long cols = plans.get(part.rank()).buffers().get(StepPlan.C).cols();
            return part.buffer() >= StepPlan.C && part.cols() == cols;
        }

        /** Sums in fp32 that are only read to be finished need not be stored. */
        private void findFinished() {
            Map<Part, Integer> readers = new HashMap<>();
            Set<Part> multiplied = new HashSet<>();
            for (StepPlan plan : plans) {
                DeviceSteps.of(plan)
                        .forEach(
                                step -> {
                                    read(step).forEach(p -> readers.merge(p, 1, Integer::sum));
                                    if (step instanceof Step.Multiply multiply) {
                                        multiplied.add(multiply.into());
                                    }
                                });
            }
            for (StepPlan plan : plans) {
                DeviceSteps.of(plan, Step.Add.class)
                        .filter(add -> add.addends().size() == 1)
                        .filter(add -> add.into().buffer() == StepPlan.C)
                        .filter(
                                add -> {
                                    Part sums = add.addends().getFirst();
                                    return sums.rank() == plan.rank()
                                            && plan.buffers().get(sums.buffer()).kind()
                                                    == Buffer.Kind.SUMS
                                            && multiplied.contains(sums)
                                            && readers.get(sums) == 1
                                            && overlaps(readers.keySet(), sums) == 1;
                                })
                        .forEach(add -> finished.put(add.addends().getFirst(), add));
            }
        }

        private static long overlaps(Set<Part> parts, Part part) {
            return parts.stream()
                    .filter(p -> p.rank() == part.rank() && p.buffer() == part.buffer())
                    .filter(
                            p ->
                                    p.firstRow() < part.firstRow() + part.rows()
                                            && part.firstRow() < p.firstRow() + p.rows())
                    .count();
        }

        /** What others may have written, except where sums go on. */
        private static List<Part> read(Step step) {
            if (step instanceof Step.Copy copy) {
                return List.of(copy.from());
            }
            return step instanceof Step.Add add ? add.addends() : List.of();
        }

        /**
         * Takes what can be taken of one kind: what waits for other ranks only after what was taken
         * before, so that items of different ranks never wait for each other.
         */
        private boolean takeAll(Class<? extends Step> kind) {
            Set<Signal> before = Set.copyOf(items.keySet());
            boolean any = false;
            for (StepPlan plan : plans) {
                int rank = plan.rank();
                List<Step> batch = new ArrayList<>();
                boolean more = true;
                while (more) {
                    more = false;
                    for (int w = 0; w < plan.workers().size(); w++) {
                        List<Step> steps = plan.workers().get(w).steps();
                        while (next.get(rank)[w] < steps.size()
                                && canTake(steps.get(next.get(rank)[w]), kind, rank, before)) {
                            Step step = steps.get(next.get(rank)[w]++);
                            if (step.signal() != null) {
                                items.put(step.signal(), itemOf(step, taken.get(rank).size()));
                            }
                            if (kind.isInstance(step) && !isFinished(step)) {
                                batch.add(step);
                            }
                            more = true;
                            any = true;
                        }
                    }
                }
                if (!batch.isEmpty()) {
                    taken.get(rank).add(batch);
                }
            }
            return any;
        }

        /** What a product finishes itself is done with the product. */
        private int itemOf(Step step, int current) {
            return isFinished(step)
                    ? step.waits().stream().mapToInt(items::get).max().orElse(current)
                    : current;
        }

        private boolean isFinished(Step step) {
            return step instanceof Step.Add add && finished.get(add.addends().getFirst()) == add;
        }

        private boolean canTake(
                Step step, Class<? extends Step> kind, int rank, Set<Signal> before) {
            boolean join = step instanceof Step.Join;
            boolean fits = join || kind.isInstance(step) || isFinished(step);
            boolean afterOwn = join || step instanceof Step.Multiply || isFinished(step);
            return fits
                    && step.waits().stream()
                            .allMatch(
                                    wait ->
                                            before.contains(wait)
                                                    || afterOwn
                                                            && wait.by() == rank
                                                            && items.containsKey(wait));
        }

        LinkedProgram program(int rank) {
            List<Set<Raised>> waits = new ArrayList<>();
            Set<List<Integer>> awaited = new HashSet<>();
            for (int r = 0; r < plans.size(); r++) {
                for (List<Step> batch : taken.get(r)) {
                    Set<Raised> ofItem = waits(r, batch);
                    ofItem.forEach(one -> awaited.add(List.of(one.by(), one.word())));
                    if (r == rank) {
                        waits.add(ofItem);
                    }
                }
            }
            List<Raised> arriving = new ArrayList<>();
            List<Item> own = new ArrayList<>();
            for (int r = 0; r < plans.size(); r++) {
                for (int i = 0; i < taken.get(r).size(); i++) {
                    List<Step> batch = taken.get(r).get(i);
                    boolean writesToOthers = writesTo(batch, r, -1);
                    if (r == rank) {
                        boolean isAwaited = writesToOthers || awaited.contains(List.of(r, i));
                        own.add(item(batch, List.copyOf(waits.get(i)), isAwaited));
                    } else if (writesTo(batch, r, rank)) {
                        arriving.add(raised(r, i));
                    }
                }
            }
            int most = taken.stream().mapToInt(List::size).max().orElse(0);
            return new LinkedProgram(own, arriving, most);
        }

        /** Whether copies of {@code rank} go to {@code to}, or to any other rank for -1. */
        private static boolean writesTo(List<Step> batch, int rank, int to) {
            return batch.stream()
                    .filter(step -> step instanceof Step.Copy)
                    .mapToInt(step -> ((Step.Copy) step).to().rank())
                    .anyMatch(target -> to < 0 ? target != rank : target == to);
        }

        private Set<Raised> waits(int rank, List<Step> batch) {
            Set<Raised> all = new LinkedHashSet<>();
            batch.stream()
                    .flatMap(step -> step.waits().stream())
                    .distinct()
                    .flatMap(steps::awaited)
                    .filter(signal -> signal.by() != rank)
                    .forEach(signal -> all.add(raised(signal.by(), items.get(signal))));
            return all;
        }

        private static Raised raised(int by, int item) {
            return new Raised(by, item, by, item / 2, item % 2, Awaited.chunk(by, by, 0));
        }

        private Item item(List<Step> batch, List<Raised> waits, boolean awaited) {
            List<Product> products = new ArrayList<>();
            List<RowSum> sums = new ArrayList<>();
            Map<Integer, List<RowSum>> moves = new HashMap<>();
            for (int i = 0; i < batch.size(); i++) {
                if (batch.get(i) instanceof Step.Multiply multiply) {
                    int end = i + 1;
                    while (end < batch.size() && continues(batch.get(end), multiply)) {
                        end++;
                    }
                    add(products, product(batch.subList(i, end)));
                    i = end - 1;
                } else if (batch.get(i) instanceof Step.Add add) {
                    add(sums, new RowSum(add.addends(), add.firstRow(), add.into()));
                } else if (batch.get(i) instanceof Step.Copy copy) {
                    add(
                            moves.computeIfAbsent(copy.to().rank(), to -> new ArrayList<>()),
                            new RowSum(List.of(copy.from()), copy.firstRow(), copy.to()));
                }
            }
            List<RowSum> all =
                    IntStream.range(0, plans.size())
                            .boxed()
                            .flatMap(to -> moves.getOrDefault(to, List.of()).stream())
                            .toList();
            return new Item(products, sums, all, waits, awaited);
        }

        private static boolean continues(Step next, Step.Multiply first) {
            return next instanceof Step.Multiply multiply
                    && multiply.resume()
                    && multiply.into().equals(first.into());
        }

        private Product product(List<Step> steps) {
            Step.Multiply first = (Step.Multiply) steps.getFirst();
            if (first.resume()) {
                throw new IllegalArgumentException(
                        "a product that goes on from sums which were stored: expected all of its parts at once");
            }
            Step.Add finish = finished.get(first.into());
            return new Product(
                    steps.stream().map(step -> ((Step.Multiply) step).a().rank()).toList(),
                    first.firstRow(),
                    finish == null ? first.into() : finish.into());
        }

        private static void add(List<Product> to, Product next) {
            Product last = to.isEmpty() ? null : to.getLast();
            if (last != null
                    && last.parts.equals(next.parts)
                    && last.firstRow + last.into.rows() == next.firstRow
                    && DeviceSteps.follows(last.into, next.into)) {
                Part into = last.into.rows(0, last.into.rows() + next.into.rows());
                to.set(to.size() - 1, new Product(last.parts, last.firstRow, into));
            } else {
                to.add(next);
            }
        }

        private static void add(List<RowSum> to, RowSum next) {
            if (!to.isEmpty() && to.getLast().isFollowedBy(next)) {
                to.set(to.size() - 1, to.getLast().joined(next));
            } else {
                to.add(next);
            }
        }
    }
}
