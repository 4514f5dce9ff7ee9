package dev.weft.cli.run;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.Operands;
import dev.weft.cli.data.QuantizedOperands;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.op.Epilogue;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** What a GPU can run. Refusals are one line, before anything is written. */
public final class CudaRules {

    private static final int TRIAL_SIZE = 64;

    /** The quantum of K: see {@link dev.weft.cuda.op.CudaMatmulReduce}. */
    private static final int SUM_QUANTUM = 16;

    private CudaRules() {}

    /** Refuses what no GPU runs. */
    static void check(RunRequest request) {
        ProblemSpec problem = request.problem();
        ExecutionSpec execution = request.execution();
        DType type = problem.aType();
        if (problem.blocks() != null) {
            throw new UsageException(
                    "--b-dtype %s on the GPU: expected --run-mode cpu", problem.labelOfB());
        }
        if (problem.fp8() != null) {
            if (!execution.workers().engine().equals("gated")) {
                throw new UsageException(
                        "--dtype fp8 with --engine %s: on the GPU expected --engine gated",
                        execution.workers().engine());
            }
        } else if (type == DType.FP32 || problem.bType() != type) {
            throw new UsageException(
                    "A is %s and B %s: on the GPU expected fp16 for both or bf16 for"
                            + " both (--run-mode cpu supports every mix)",
                    type.label(), problem.bType().label());
        }
        boolean givesAny = problem.fp8() != null || problem.outType() == DType.FP32;
        if (!givesAny && problem.outType() != type) {
            throw new UsageException(
                    "--out-dtype %s of inputs in %s: on the GPU expected fp32 or %s",
                    problem.outType().label(), type.label(), type.label());
        }
        if (!problem.gathers()) {
            checkSums(problem, execution);
        }
        List<Integer> largest =
                Collections.max(
                        problem.replicaGroups().groups(), Comparator.comparingInt(List::size));
        int last = largest.getLast();
        if (problem.cols(last) < 1) {
            throw new UsageException(
                    "rank %s has no column of the %s of B: on the GPU expected at least one for"
                            + " every rank, or --rhs replicated",
                    last, problem.n());
        }
        if (execution.place().hostPeers() && !problem.replicaGroups().isAll(problem.ranks())) {
            throw new UsageException(
                    "--peers host with %s: expected one group of all ranks, since only rank 0 runs",
                    problem.replicaGroups().isEqual(problem.ranks())
                            ? "--groups " + problem.groups()
                            : "--replica-groups " + problem.replicaGroups());
        }
    }

    /** Refuses sums over ranks that a GPU does not run. */
    private static void checkSums(ProblemSpec problem, ExecutionSpec execution) {
        List<Reduction> possible = new ArrayList<>(List.of(Reduction.AUTO));
        if (!execution.place().hostPeers()) {
            possible.add(Reduction.DIRECT);
        }
        possible.addAll(List.of(Reduction.CHAIN, Reduction.MESH_PUSH, Reduction.SEQUENTIAL));
        ReductionWriter reduction = ReductionWriter.named(execution.algorithm());
        boolean own = !(reduction instanceof Reduction) && !execution.place().hostPeers();
        if (!own && !possible.contains(reduction)) {
            throw new UsageException(
                    "--algorithm %s with --peers %s: on the GPU expected one of %s",
                    reduction.label(),
                    execution.place().peers(),
                    String.join(", ", possible.stream().map(Reduction::label).toList()));
        }
        if (execution.order() == Reduction.Order.BY_RANK_BF16 && problem.aType() != DType.BF16) {
            throw new UsageException(
                    "--order %s of %s operands: on the GPU expected --dtype bf16",
                    Reduction.Order.BY_RANK_BF16.label(), problem.aType().label());
        }
        for (List<Integer> group : problem.replicaGroups().groups()) {
            Shards kParts = problem.kParts(group.getFirst());
            boolean fits =
                    IntStream.range(0, kParts.ranks())
                            .filter(r -> kParts.rows(r) > 0)
                            .allMatch(r -> kParts.firstRow(r) % SUM_QUANTUM == 0);
            if (execution.order() == Reduction.Order.WHOLE && !fits) {
                throw new UsageException(
                        "parts of K of %s in order whole: GPUs sum %s k at a time, expected cuts at"
                                + " multiples of that in --k-parts, or --order by-rank",
                        kParts, SUM_QUANTUM);
            }
        }
    }

    /**
     * Refuses what this machine lacks or what its GPU cannot hold, by preparing a small operator
     * like the requested one. Kernels are compiled here, once for all ranks.
     */
    static void checkOnGpu(RunRequest request) {
        ProblemSpec problem = request.problem();
        ExecutionSpec execution = request.execution();
        requireGpu();
        if (!problem.gathers()) {
            return;
        }
        try (Arena arena = Arena.ofConfined();
                CudaSite site = new CudaSite(null)) {
            ProblemSpec shape =
                    problem.ofFiles(
                            problem.shards(),
                            TRIAL_SIZE,
                            TRIAL_SIZE,
                            problem.aType(),
                            problem.bType());
            Operands plain = smallOperands(problem, arena);
            boolean scaled = problem.fp8() != null;
            Operands small = scaled ? new QuantizedOperands(plain, shape, arena) : plain;
            int first = problem.rankOf(0, 0);
            CudaInputs inputs = CudaInputs.upload(shape, small, first, site);
            ExecutionSpec trial =
                    execution.with(
                            execution.place(),
                            trialAlgorithm(execution),
                            execution.workers(),
                            request.cut(first),
                            execution.rounds());
            try (CudaAllGatherMatmul op =
                    Operators.of(new RunRequest(shape, trial), small, first)
                            .gatherOnGpu(site.gpu(), null, inputs.b(), null)
                            .epilogue(trialEpilogue(execution))
                            .prepare()) {
                // Their verdicts mean nothing yet; this loads their kernels.
                DeviceMatrix product = op.callInPlace(View.PIPELINED).product();
                if (!scaled) {
                    site.check().product(inputs.a(), inputs.b(), shape.transposeB(), product);
                }
                site.check().equal(product, product);
            }
        } catch (IllegalStateException e) {
            throw new UsageException("--run-mode cuda: " + e.getMessage());
        }
    }

    /** Refuses a machine without a GPU. */
    public static void requireGpu() {
        Gpu.unavailable()
                .ifPresent(
                        why -> {
                            throw new UsageException("--run-mode cuda: no GPU: " + why);
                        });
    }

    /** Ranks on devices support every algorithm; this refuses what host memory cannot do. */
    private static String trialAlgorithm(ExecutionSpec execution) {
        boolean auto = execution.algorithm().equals(Algorithm.AUTO.label());
        return execution.place().hostPeers() && !auto
                ? execution.algorithm()
                : Algorithm.MESH_PULL.label();
    }

    /** Any steps load the file that has the kernels of all. */
    private static Epilogue trialEpilogue(ExecutionSpec execution) {
        return execution.epilogue() == null ? Epilogue.none() : Epilogue.none().relu();
    }

    /** A has the requested number of rows, since the choice of a kernel depends on it. */
    private static Operands smallOperands(ProblemSpec problem, Arena arena) {
        Matrix a = Matrix.allocate(arena, problem.aType(), problem.m(), TRIAL_SIZE);
        Matrix b = Matrix.allocate(arena, problem.bType(), TRIAL_SIZE, TRIAL_SIZE);
        new NormalData(problem.seed(), 1).fill(b);
        return new Operands() {
            @Override
            public Matrix shard(int rank) {
                int member = problem.memberOf(rank);
                Shards shards = problem.shards(rank);
                return a.rows(shards.firstRow(member), shards.rows(member));
            }

            @Override
            public Matrix b(int rank) {
                return b;
            }
        };
    }
}
