package dev.weft.exec.host;

import dev.weft.fabric.transport.Awaited;

/**
 * A word that must have reached a value. Values grow from call to call and are never reset.
 *
 * @param home the rank in whose part of the region the word is
 * @param at its offset there
 * @param stride by how much its values grow from call to call
 * @param first its value in the first call
 */
record Need(int home, long at, int stride, int first, Awaited what) {

    /** The value in a call; wraps around, which comparisons allow for. */
    int value(int call) {
        return (call - 1) * stride + first;
    }
}
