package dev.weft.cli.run;

import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.verify.EpilogueJudge;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.cuda.op.CudaMatmulReduceBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.plan.Placements;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepChecker.SummedRows;
import dev.weft.plan.step.SumOrder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * A rank on a GPU whose products are summed over ranks. Its expected result, and what host peers
 * would send it, are products of one rank over parts of K, by an operator that sums nothing.
 */
final class CudaSumsRank extends CudaRank {

    private final boolean isStaged;
    private final int member;
    private final Shards kParts;
    private final DeviceMatrix a;
    private final DeviceMatrix b;
    private final int products;

    CudaSumsRank(
            RunRequest request,
            Operands operands,
            Transport world,
            Fabric group,
            EpilogueData data) {
        super(request, operands, world, group, data);
        this.isStaged = request.isStaged();
        this.member = problem.memberOf(rank);
        this.kParts = problem.kParts(rank);
        try (Arena inputs = Arena.ofConfined()) {
            this.a = site.put(Operands.gatheredA(operands, problem, rank, inputs));
            this.b = site.put(Operands.wholeB(operands, problem, rank, inputs));
        }
        this.products = operators.bs().size();
    }

    @Override
    public Operator<DeviceMatrix> prepare() {
        return operators.reduceOnGpu(site.gpu(), group).epilogue(epilogue).prepare();
    }

    @Override
    public Operator<DeviceMatrix> prepareSequential() {
        CudaMatmulReduceBuilder builder = operators.sequential().reduceOnGpu(site.gpu(), group);
        // Sums take the same way in both.
        return (isStaged ? builder.staged() : builder).epilogue(epilogue).prepare();
    }

    /**
     * Places what the peers would send: sums before this rank's, whole sums, and those of each
     * alone.
     */
    @Override
    void placePeers(Operator<DeviceMatrix> prepared) {
        CudaMatmulReduce operator = (CudaMatmulReduce) prepared;
        for (int slot = 0; slot < Reduction.slotOf(kParts.ranks()); slot++) {
            if (operator.incoming(0, slot).isEmpty()) {
                continue;
            }
            try (Arena sums = Arena.ofShared()) {
                Matrix from;
                if (slot == Reduction.PARTIAL) {
                    from = product(0, kParts.firstRow(member), DType.FP32, sums);
                } else if (slot == Reduction.WHOLE) {
                    from = sums(order(operator), sums);
                } else {
                    from = part(slot - Reduction.slotOf(0), sums);
                }
                for (int product = 0; product < products; product++) {
                    Matrix to = operator.incoming(product, slot).orElseThrow();
                    Matrix rows = products(from).get(product).rows(0, to.rows());
                    to.copyFrom(rows.converted(sums, to.dtype()));
                }
            }
        }
    }

    /** The order in which an operator sums. */
    private Order order(Operator<DeviceMatrix> operator) {
        boolean own =
                execution.order() == Order.OWN
                        && !operator.plan().name().equals(Reduction.SEQUENTIAL.label());
        if (own) {
            return Order.OWN;
        }
        // Steps do not say whether sums are rounded before they are added.
        return execution.order() == Order.BY_RANK_BF16
                ? Order.BY_RANK_BF16
                : Order.of(operator.steps());
    }

    /** All rows' sums in the order of an operator; in an order of its own, only this rank's. */
    private Matrix sums(Operator<DeviceMatrix> operator, Arena into) {
        if (order(operator) != Order.OWN) {
            return sums(order(operator), into);
        }
        Matrix all = Matrix.allocate(into, DType.FP32, a.rows(), problem.n());
        Placement placement =
                Placements.reduce(
                        problem.shards(rank),
                        kParts,
                        operator.plan().chunks().cols(),
                        problem.sums().all());
        for (SummedRows rows :
                StepChecker.orders(operator.steps(), placement, (one, other) -> true)) {
            if (rows.rank() == member) {
                Matrix sums = summed(rows.order(), into);
                Matrix to = all.rows(rows.firstRow(), rows.rows());
                to.copyFrom(sums.rows(rows.firstRow(), rows.rows()));
            }
        }
        return all;
    }

    private Matrix summed(SumOrder order, Arena into) {
        if (order instanceof SumOrder.Over over && over.before() == null) {
            return product(over.firstK(), over.endK(), DType.FP32, into);
        }
        if (order instanceof SumOrder.Added added) {
            Matrix sum = summed(added.sums().getFirst(), into);
            added.sums().stream().skip(1).forEach(next -> add(sum, summed(next, into)));
            return sum;
        }
        throw new IllegalStateException(
                "sums on a GPU in the order %s: expected products from zero, added in fp32"
                        .formatted(order.text()));
    }

    /** The product over columns {@code from} to {@code to} of A, on this rank alone. */
    private Matrix product(long from, long to, DType type, Arena into) {
        Matrix c = Matrix.allocate(into, type, a.rows(), problem.n());
        if (from == to || a.rows() == 0) {
            return c;
        }
        DeviceMatrix some = columns(a, from, to);
        DeviceMatrix side = problem.transposeB() ? columns(b, from, to) : b.rows(from, to - from);
        try (CudaAllGatherMatmul alone =
                CudaAllGatherMatmul.withHostPeers(site.gpu(), 0)
                        .a(Shards.of(a.rows()), a.dtype())
                        .b(side, problem.transposeB())
                        .output(type)
                        .prepare()) {
            alone.call(some).product().download(c, site.stream());
        }
        return c;
    }

    private static DeviceMatrix columns(DeviceMatrix of, long from, long to) {
        return new DeviceMatrix(of.at(0, from), of.dtype(), of.rows(), to - from, of.rowPitch());
    }

    private Matrix part(int of, Arena into) {
        return product(
                kParts.firstRow(of), kParts.firstRow(of) + kParts.rows(of), DType.FP32, into);
    }

    /** All sums in fp32. In the order by rank, parts are added here on the CPU. */
    private Matrix sums(Order order, Arena into) {
        if (order == Order.WHOLE) {
            return product(0, kParts.totalRows(), DType.FP32, into);
        }
        Matrix sum = null;
        for (int r = 0; r < kParts.ranks(); r++) {
            if (kParts.rows(r) > 0) {
                Matrix part = part(r, into);
                if (order == Order.BY_RANK_BF16) {
                    part = part.converted(into, DType.BF16).converted(into, DType.FP32);
                }
                if (sum == null) {
                    sum = part;
                } else {
                    add(sum, part);
                }
            }
        }
        return sum;
    }

    /** Cuts sums with all columns of B into those of each of the operator's products. */
    private List<Matrix> products(Matrix sums) {
        return EpilogueData.products(execution.epilogue(), sums, false);
    }

    /** This rank's rows of C, from their sums. */
    private Matrix expected(Matrix sums, Arena into) {
        return data == null
                ? sums.converted(into, problem.outType())
                : data.finished(sums, problem.outType(), into);
    }

    private static void add(Matrix sum, Matrix part) {
        for (long row = 0; row < sum.rows(); row++) {
            for (long col = 0; col < sum.cols(); col++) {
                sum.set(row, col, sum.get(row, col) + part.get(row, col));
            }
        }
    }

    /** Checks the results of both operators bit for bit, and what the rank sent to host peers. */
    @Override
    public Judged judge(Operator<DeviceMatrix> fused, Operator<DeviceMatrix> sequential)
            throws IOException {
        Matrix overlapped = callOnPoison(fused);
        Matrix plain = callOnPoison(sequential);
        RankSite.barrier(world);
        Judged judged =
                Heartbeat.during(
                        world,
                        () -> {
                            Judged one = judge((CudaMatmulReduce) fused, overlapped);
                            Judged other = judge((CudaMatmulReduce) sequential, plain);
                            return new Judged(
                                    true,
                                    one.equal() && other.equal(),
                                    one.withinBound() && other.withinBound(),
                                    overlapped,
                                    null);
                        });
        RankSite.barrier(world);
        return judged;
    }

    private Matrix callOnPoison(Operator<DeviceMatrix> operator) {
        RankSite.barrier(world);
        site.check().poison(((CudaMatmulReduce) operator).product(0));
        if (execution.place().hostPeers()) {
            for (int slot = 0; slot < Reduction.slotOf(kParts.ranks()); slot++) {
                for (int product = 0; product < products; product++) {
                    ((CudaMatmulReduce) operator)
                            .outgoing(product, slot)
                            .ifPresent(sent -> sent.data().fill((byte) 0xFF));
                }
            }
        }
        call(operator);
        return site.get(((CudaMatmulReduce) operator).product(0), arena);
    }

    /**
     * Whether a result has the bits that the CPU makes of one rank's sums, and these keep to the
     * float64 bound; an epilogue is checked too.
     */
    private Judged judge(CudaMatmulReduce operator, Matrix found) {
        try (Arena memory = Arena.ofShared()) {
            boolean rounded = order(operator) == Order.BY_RANK_BF16;
            Matrix rows = ownRows(sums(operator, memory));
            Matrix expected = expected(rows, memory);
            boolean equal = expected.equalsUpToNaN(found) && sentExpected(operator, memory);
            // Parts that are rounded keep to another bound, so it is checked before they are.
            Matrix exact = rounded ? ownRows(sums(Order.BY_RANK, memory)) : rows;
            boolean right =
                    data == null && !rounded
                            ? isRight(operator.product(0))
                            : isRight(site.put(exact))
                                    && (data == null
                                            || new EpilogueJudge(data).worst(rows, expected) <= 1);
            return new Judged(true, equal, right, found, null);
        }
    }

    private Matrix ownRows(Matrix all) {
        return all.rows(problem.firstRowOfC(rank), problem.rowsOfC(rank));
    }

    private boolean sentExpected(CudaMatmulReduce operator, Arena sums) {
        boolean same = true;
        for (int product = 0; execution.place().hostPeers() && product < products; product++) {
            same &= sentExpected(operator, product, sums);
        }
        return same;
    }

    /** This rank's own rows are not sent, and still hold what they were filled with. */
    private boolean sentExpected(CudaMatmulReduce operator, int product, Arena sums) {
        long end = kParts.firstRow(member) + kParts.rows(member);
        Matrix partial = operator.outgoing(product, Reduction.PARTIAL).orElse(null);
        if (partial != null
                && !products(product(0, end, DType.FP32, sums))
                        .get(product)
                        .equalsUpToNaN(partial)) {
            return false;
        }
        Matrix own = operator.outgoing(product, Reduction.slotOf(member)).orElse(null);
        if (own == null) {
            return true;
        }
        Matrix part = products(part(member, sums)).get(product).converted(sums, own.dtype());
        Shards rows = problem.shards(rank);
        for (int r = 0; r < rows.ranks(); r++) {
            long first = rows.firstRow(r);
            boolean same =
                    r == member
                            || part.rows(first, rows.rows(r))
                                    .equalsUpToNaN(own.rows(first, rows.rows(r)));
            if (!same) {
                return false;
            }
        }
        return true;
    }

    private boolean isRight(DeviceMatrix c) {
        DeviceMatrix rows = a.rows(problem.firstRowOfC(rank), problem.rowsOfC(rank));
        return site.check().product(rows, b, problem.transposeB(), c).passed();
    }
}
