package dev.weft.fabric.mpi;

import java.lang.foreign.Arena;

/**
 * A received message, and for a put how much of its rectangle has arrived. Used by the progress
 * thread alone.
 */
final class MpiArrival {

    final MpiMessage message;
    MpiFragments fragments;
    long address;
    int nextFragment;
    int fragmentsLeft;

    MpiArrival(Arena arena) {
        message = new MpiMessage(arena, MpiMessage.BYTES);
    }

    int fragmentCount() {
        return fragments == null ? 0 : fragments.count();
    }

    /** A message without a rectangle. */
    void of(MpiMessage received) {
        message.copyFrom(received);
        fragments = null;
        nextFragment = 0;
        fragmentsLeft = 0;
    }

    /**
     * A put.
     *
     * @param target the address at which its rectangle arrives
     */
    void of(MpiMessage received, MpiFragments cut, long target) {
        message.copyFrom(received);
        fragments = cut;
        address = target;
        nextFragment = 0;
        fragmentsLeft = cut.count();
    }
}
