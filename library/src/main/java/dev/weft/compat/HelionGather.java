package dev.weft.compat;

import dev.weft.cuda.GpuStream;
import java.util.Optional;

/**
 * A gather under way: a thread or a stream of its own pulls shard after shard, own one last, and
 * tells of every chunk. Every rank awaits it before its next collective call on the group; then
 * closes it.
 */
public interface HelionGather extends AutoCloseable {

    /** On a GPU the backend stream: what is queued on it comes after the copies. */
    Optional<GpuStream> stream();

    /** Blocks until every rank's copies are done: from then on shards may be written. */
    void await();

    /** Waits for this rank's copies and frees what they needed. */
    @Override
    void close();
}
