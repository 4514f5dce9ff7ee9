package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import java.util.Optional;

/**
 * A running gather: a separate thread or stream pulls shard after shard, own one last, and reports
 * every chunk. On the CPU every rank awaits it before its next collective call on the group; on
 * GPUs streams may wait instead.
 */
public interface HelionGather extends AutoCloseable {

    /** On a GPU the backend stream: what is queued on it comes after every rank's copies. */
    Optional<GpuStream> stream();

    /**
     * Blocks until every rank's copies are done: from then on shards may be written.
     *
     * @throws dev.weft.fabric.FabricException if they are not within the group's deadline
     */
    void await();

    /** On the CPU, waits for this rank's copies; on a GPU they continue. */
    @Override
    void close();
}
