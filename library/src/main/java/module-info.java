/**
 * C = allgather(A) x B, computed while A is still arriving, and its mirror: products that are
 * summed over ranks while they are still being multiplied.
 *
 * <h2>In five steps</h2>
 *
 * <ol>
 *   <li><b>Ranks.</b> A {@link dev.weft.fabric.World} starts them as threads of this process, or
 *       joins those that {@code weft launch}, {@code mpirun} or {@code srun} has started. {@link
 *       dev.weft.fabric.World#auto World.auto} does whichever fits. Every rank gets a {@link
 *       dev.weft.fabric.Fabric}, its connection to the others.
 *   <li><b>Matrices.</b> A {@link dev.weft.tensor.Matrix} is memory with a type and a shape: a copy
 *       of a Java array, a view of a {@link java.lang.foreign.MemorySegment}, or a file, read by
 *       {@link dev.weft.tensor.MatrixFiles}. Matrices that several ranks read need {@link
 *       java.lang.foreign.Arena#ofShared}.
 *   <li><b>An operator.</b> Say which rows of A each rank has ({@link dev.weft.plan.Shards}) and
 *       what this rank multiplies by, then {@code prepare()}. That is where ranks agree, B is
 *       packed and an algorithm is chosen.
 *   <li><b>Calls.</b> {@link dev.weft.op.Operator#call call} as often as you like; {@link
 *       dev.weft.op.Operator#start start} returns while the call runs. {@link
 *       dev.weft.op.Operator#nextShard nextShard} saves a copy of A, {@link
 *       dev.weft.op.Operator#replaceB replaceB} replaces B.
 *   <li><b>Results.</b> {@link dev.weft.op.Result} has the product, gathered A if it was kept, and
 *       a {@link dev.weft.trace.Timeline} of what every worker did.
 * </ol>
 *
 * <p>All ranks prepare, call and close their operators in the same order. A rank that fails ends
 * the calls of all others with a {@link dev.weft.fabric.FabricException} that names it.
 *
 * <h2>Which operator</h2>
 *
 * <table>
 *   <caption>Operators, by what a rank has and what it gets</caption>
 *   <tr><th>operator</th><th>a rank has</th><th>a rank gets</th></tr>
 *   <tr><td>{@link dev.weft.op.AllGatherMatmul}</td><td>rows of A; B, or its columns</td>
 *       <td>all rows of the product with its B</td></tr>
 *   <tr><td>{@link dev.weft.op.MatmulReduceScatter}</td><td>columns of A, and these rows of B</td>
 *       <td>its rows of the sum</td></tr>
 *   <tr><td>{@link dev.weft.op.MatmulAllReduce}</td><td>columns of A, and these rows of B</td>
 *       <td>all rows of the sum</td></tr>
 *   <tr><td>{@link dev.weft.op.AllGather}</td><td>rows of A</td><td>all rows of A</td></tr>
 * </table>
 *
 * <p>{@link dev.weft.cuda.op} has the same on NVIDIA GPUs. An {@link dev.weft.op.Epilogue} adds
 * biases, activations and residuals. {@link dev.weft.plan} is for algorithms of your own, {@link
 * dev.weft.predict} predicts times on models of machines. The page of each package shows a program.
 * The module {@code dev.weft.compat} has the calls of other systems.
 */
module dev.weft {
    requires com.fasterxml.jackson.core;
    requires java.management;
    requires jdk.jfr;
    // Optional at run time: only the fallback engine needs it, on CPUs without Weft's machine code.
    requires static jdk.incubator.vector;

    // Algorithms that users add.
    uses dev.weft.plan.GatherWriter;
    uses dev.weft.plan.ReductionWriter;

    // The ways to start ranks: World knows none of them, so that they can be built on it. In this
    // order World.auto asks who has started this process.
    uses dev.weft.fabric.World.Launcher;

    provides dev.weft.fabric.World.Launcher with
            dev.weft.fabric.mpi.MpiLauncher,
            dev.weft.fabric.memory.ProcessLauncher,
            dev.weft.fabric.memory.ThreadLauncher;

    exports dev.weft.cuda;
    exports dev.weft.cuda.op;
    exports dev.weft.fabric;
    exports dev.weft.op;
    exports dev.weft.plan;
    exports dev.weft.plan.group;
    exports dev.weft.plan.step;
    exports dev.weft.predict;
    exports dev.weft.tensor;
    exports dev.weft.trace;

    // For models of GPUs.
    exports dev.weft.cuda.exec to
            dev.weft.cli,
            dev.weft.compat;

    // For checks of GPU products, and for packed kernels.
    exports dev.weft.cuda.kernel to
            dev.weft.cli,
            dev.weft.compat;

    // For engines that the command measures, and for checks of products.
    exports dev.weft.gemm to
            dev.weft.cli,
            dev.weft.compat;

    // For inputs that the command generates.
    exports dev.weft.tensor.data to
            dev.weft.cli,
            dev.weft.compat;

    // For plan, sweep and simulated runs.
    exports dev.weft.plan.cut to
            dev.weft.cli,
            dev.weft.compat;
    exports dev.weft.search to
            dev.weft.cli,
            dev.weft.compat;
    exports dev.weft.sim to
            dev.weft.cli,
            dev.weft.compat;

    // For weft calibrate, the command's benchmarks and the medians in records.
    exports dev.weft.tune to
            dev.weft.cli;

    // The command starts ranks on this host.
    exports dev.weft.fabric.memory to
            dev.weft.cli;

    // What operators need from a fabric; users of the library need none of it.
    exports dev.weft.fabric.transport to
            dev.weft.cli,
            dev.weft.compat;

    // For messages between the command and its ranks.
    exports dev.weft.files to
            dev.weft.cli;

    // For the command's doctor; nothing else outside may bind native code.
    exports dev.weft.ffi to
            dev.weft.cli,
            dev.weft.compat;

    // Records use the same JSON reader and writer as machine models.
    exports dev.weft.json to
            dev.weft.cli,
            dev.weft.compat;

    // So that the command's messages, waits, fallbacks and ends are the library's.
    exports dev.weft.process to
            dev.weft.cli,
            dev.weft.compat;
}
