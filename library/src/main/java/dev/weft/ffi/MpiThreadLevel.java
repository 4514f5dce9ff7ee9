package dev.weft.ffi;

/** Which threads of a process may call MPI, in the order of every family's numbers from 0 on. */
public enum MpiThreadLevel {
    /** The process has one thread. */
    SINGLE,
    /** The thread that initialised MPI. */
    FUNNELED,
    /** Any thread, one at a time. */
    SERIALIZED,
    /** Any threads at once. */
    MULTIPLE
}
