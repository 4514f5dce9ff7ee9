package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** The operators on CPUs, for tests of what holds for all of them. K is cut evenly. */
enum OperatorKind {
    GATHER,
    SCATTER,
    ALL;

    private static final String AUTO = "auto";

    /** Every operator with every algorithm that it has. */
    static Stream<Arguments> withAlgorithms() {
        return Arrays.stream(values())
                .flatMap(kind -> kind.algorithms().stream().map(name -> Arguments.of(kind, name)));
    }

    /** Auto becomes one of the others. */
    static Stream<Arguments> withAlgorithmsButAuto() {
        return withAlgorithms().filter(arguments -> !arguments.get()[1].equals(AUTO));
    }

    private List<String> algorithms() {
        return this == GATHER
                ? Arrays.stream(Algorithm.values()).map(Algorithm::label).toList()
                : Arrays.stream(Reduction.values()).map(Reduction::label).toList();
    }

    /** An operator for the problem, as far as that says. */
    MatmulBuilder<Matrix, ?> on(Fabric fabric, Problem problem, String algorithm) {
        if (this == GATHER) {
            return problem.on(fabric).algorithm(Algorithm.of(algorithm));
        }
        return sums(fabric)
                .a(problem.shards(), kParts(problem), problem.a().dtype())
                .b(side(problem, fabric.rank()))
                .output(problem.out())
                .algorithm(Reduction.of(algorithm));
    }

    private MatmulReduceBuilder<? extends Operator<Matrix>> sums(Fabric fabric) {
        return this == ALL ? MatmulAllReduce.on(fabric) : MatmulReduceScatter.on(fabric);
    }

    private static Shards kParts(Problem problem) {
        return Shards.even(problem.a().cols(), problem.shards().ranks());
    }

    /** What a rank gives as B. */
    Matrix side(Problem problem, int rank) {
        Shards kParts = kParts(problem);
        return this == GATHER
                ? problem.b()
                : problem.b().rows(kParts.firstRow(rank), kParts.rows(rank));
    }

    /** What a rank gives to a call. */
    Matrix input(Problem problem, int rank) {
        Shards kParts = kParts(problem);
        return this == GATHER
                ? problem.shard(rank)
                : problem.a()
                        .block(0, problem.a().rows(), kParts.firstRow(rank), kParts.rows(rank));
    }

    /** What a rank gets, in the whole product's order. */
    Matrix expected(Problem problem, int rank) {
        Shards shards = problem.shards();
        return this == SCATTER
                ? problem.unfused().rows(shards.firstRow(rank), shards.rows(rank))
                : problem.unfused();
    }
}
