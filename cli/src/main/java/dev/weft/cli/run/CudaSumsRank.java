package dev.weft.cli.run;

import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.verify.EpilogueJudge;
import dev.weft.cli.verify.OrderedSums;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaMatmulReduce;
import dev.weft.cuda.op.CudaMatmulReduceBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
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
                    from = product(0, kParts.firstRow(member), sums);
                } else if (slot == Reduction.WHOLE) {
                    from = sums(operator, sums);
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
                : Order.of(operator.plan().steps());
    }

    /** All rows' sums as an operator sums them; in an order of its own, only this rank's. */
    private Matrix sums(Operator<DeviceMatrix> operator, Arena into) {
        Order order = order(operator);
        if (order != Order.OWN) {
            return summed(OrderedSums.of(order, kParts), into);
        }
        Matrix all = Matrix.allocate(into, DType.FP32, a.rows(), problem.n());
        Placement placement =
                new ReductionRequest(
                                operator.plan().chunks(), kParts, problem.sums().all(), Order.OWN)
                        .placement();
        for (SummedRows rows :
                StepChecker.orders(operator.plan().steps(), placement, (one, other) -> true)) {
            if (rows.rank() == member) {
                Matrix sums = summed(rows.order(), into);
                Matrix to = all.rows(rows.firstRow(), rows.rows());
                to.copyFrom(sums.rows(rows.firstRow(), rows.rows()));
            }
        }
        return all;
    }

    /** Sums in fp32: products on this rank alone, which are added on the CPU. */
    private Matrix summed(SumOrder order, Arena into) {
        return OrderedSums.in(
                order,
                (before, from, to) -> {
                    if (before != null) {
                        throw new IllegalStateException(
                                "sums on a GPU in the order %s: expected products from zero, added in fp32"
                                        .formatted(order.text()));
                    }
                    return product(from, to, into);
                },
                into);
    }

    /** The product over columns {@code from} to {@code to} of A, on this rank alone. */
    private Matrix product(long from, long to, Arena into) {
        Matrix c = Matrix.allocate(into, DType.FP32, a.rows(), problem.n());
        if (from == to || a.rows() == 0) {
            return c;
        }
        DeviceMatrix some = CudaSite.columns(a, from, to);
        DeviceMatrix bRows =
                problem.transposeB() ? CudaSite.columns(b, from, to) : b.rows(from, to - from);
        try (CudaAllGatherMatmul alone =
                CudaAllGatherMatmul.withHostPeers(site.gpu(), 0)
                        .a(Shards.of(a.rows()), a.dtype())
                        .b(bRows, problem.transposeB())
                        .output(DType.FP32)
                        .prepare()) {
            alone.call(some).product().download(c, site.stream());
        }
        return c;
    }

    private Matrix part(int of, Arena into) {
        return product(kParts.firstRow(of), kParts.firstRow(of) + kParts.rows(of), into);
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
            Matrix exact =
                    rounded ? ownRows(summed(OrderedSums.of(Order.BY_RANK, kParts), memory)) : rows;
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
                && !products(product(0, end, sums)).get(product).equalsUpToNaN(partial)) {
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
