/** Weft: C = allgather(A) x B, computed while A is still arriving. */
module dev.weft {
    requires com.fasterxml.jackson.core;
    requires java.management;
    requires jdk.jfr;
    // Optional at run time: for the engine where Weft has no machine code.
    requires static jdk.incubator.vector;

    // Algorithms of others.
    uses dev.weft.plan.PlanWriter;

    exports dev.weft.compat;
    exports dev.weft.cuda;
    exports dev.weft.fabric;
    exports dev.weft.op;
    exports dev.weft.plan;
    exports dev.weft.predict;
    exports dev.weft.tensor;

    // For verdicts on products of GPUs, and kernels that are packed.
    exports dev.weft.cuda.exec to
            dev.weft.cli;

    // For engines that the command measures, and for verdicts on products.
    exports dev.weft.gemm to
            dev.weft.cli;

    // For timelines in records.
    exports dev.weft.op.exec to
            dev.weft.cli;

    // For inputs that the command makes up.
    exports dev.weft.tensor.data to
            dev.weft.cli;

    // For plan, sweep and simulated runs.
    exports dev.weft.plan.cut to
            dev.weft.cli;
    exports dev.weft.search to
            dev.weft.cli;
    exports dev.weft.sim to
            dev.weft.cli;

    // For weft calibrate and the command's benches.
    exports dev.weft.tune to
            dev.weft.cli;

    // The command starts ranks on this host.
    exports dev.weft.fabric.memory to
            dev.weft.cli;

    // What operators ask of a fabric; users of the library need none of it.
    exports dev.weft.fabric.transport to
            dev.weft.cli;

    // For what the command and its ranks tell each other.
    exports dev.weft.files to
            dev.weft.cli;

    // For the command's doctor; nothing else outside may bind natively.
    exports dev.weft.ffi to
            dev.weft.cli;

    // Records are read and written as machines are.
    exports dev.weft.json to
            dev.weft.cli;

    // Records tell medians as the library measures them.
    exports dev.weft.statistics to
            dev.weft.cli;

    // So that all messages show texts from outside in one way.
    exports dev.weft.text to
            dev.weft.cli;

    // The command's own waits count time as the ranks' do.
    exports dev.weft.time to
            dev.weft.cli;

    // So that the command tells of fallbacks as the library does.
    exports dev.weft.telemetry to
            dev.weft.cli;
}
