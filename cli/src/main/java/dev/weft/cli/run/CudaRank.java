package dev.weft.cli.run;

import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Epilogue;
import dev.weft.op.Operator;
import dev.weft.op.Result;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;

/** The site of a rank on a GPU. */
abstract class CudaRank implements RankSite<DeviceMatrix> {

    final ProblemSpec problem;
    final ExecutionSpec execution;
    final Operands operands;
    final Operators operators;
    final Transport world;
    final Fabric group;
    final int rank;
    final Arena arena = Arena.ofShared();
    final CudaSite site;
    final EpilogueData data;
    final Epilogue epilogue;

    /**
     * @param world null if the peers are host memory
     * @param data what an epilogue adds to this rank's rows of C; null if there is none
     */
    CudaRank(
            RunRequest request,
            Operands operands,
            Transport world,
            Fabric group,
            EpilogueData data) {
        this.problem = request.problem();
        this.execution = request.execution();
        this.operands = operands;
        this.world = world;
        this.group = group;
        this.rank = world == null ? 0 : world.rank();
        this.site = new CudaSite(world);
        this.operators = Operators.of(request, operands, rank);
        this.data = data;
        this.epilogue = data == null ? Epilogue.none() : data.epilogue(residual(data.residual()));
    }

    /** Null if there is none. */
    private DeviceMatrix residual(Matrix matrix) {
        return matrix == null ? null : site.put(matrix);
    }

    @Override
    public final String device() {
        return execution.workers().engine().equals("cublas")
                ? site.device()
                : site.deviceAndKernel();
    }

    @Override
    public final void place(Operator<DeviceMatrix> operator) {
        if (execution.place().hostPeers()) {
            placePeers(operator);
        }
        for (int half = 0; half < 2; half++) {
            RankSite.barrier(world);
            operator.nextShard().upload(operands.moved(rank), site.stream());
            call(operator);
        }
    }

    /** Places in host memory what the peers would send. */
    abstract void placePeers(Operator<DeviceMatrix> operator);

    final Result<DeviceMatrix> call(Operator<DeviceMatrix> operator) {
        RankSite.barrier(world);
        return operator.callInPlace(View.PIPELINED);
    }

    @Override
    public final void close() {
        site.close();
        arena.close();
    }
}
