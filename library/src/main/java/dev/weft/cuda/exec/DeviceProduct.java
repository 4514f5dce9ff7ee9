package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;

/** A product whose rows wait for the flags of what they are made of. One thread at a time. */
public interface DeviceProduct extends AutoCloseable {

    /** Thread blocks of its grid; 0 where a library chooses. */
    int blocks();

    /**
     * Queues it on a stream.
     *
     * @param place which of A's places it reads
     * @param epoch what the flags must have reached
     */
    void launch(int place, int epoch, GpuStream stream);

    @Override
    void close();
}
