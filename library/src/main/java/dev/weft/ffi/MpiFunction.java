package dev.weft.ffi;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Collections;

/**
 * A function of MPI, which returns a code, 0 for success. Every argument is passed as a long and is
 * narrowed to the width that the loaded library's signature has, so that there is one {@code call}
 * per number of arguments. Held in a static final field the handle is a constant for the compiler
 * (a record's fields are trusted), so that a call allocates nothing.
 */
record MpiFunction(String symbol, MethodHandle handle) {

    static MpiFunction bind(BoundLibrary library, String symbol, MemoryLayout... parameters) {
        FunctionDescriptor exact = FunctionDescriptor.of(ValueLayout.JAVA_INT, parameters);
        MethodType longs =
                MethodType.methodType(
                        int.class, Collections.nCopies(parameters.length, long.class));
        return new MpiFunction(
                symbol, MethodHandles.explicitCastArguments(library.bind(symbol, exact), longs));
    }

    /** A code other than 0, as an exception; the caller throws it. */
    MpiException failed(int code, String arguments) {
        return new MpiException(
                MpiCalls.family().label(), symbol, arguments, code, MpiCalls.errorText(code));
    }

    private RuntimeException broken(Throwable e) {
        if (e instanceof Error error) {
            throw error;
        }
        return e instanceof IllegalStateException missing
                ? missing
                : new IllegalStateException("MPI: " + symbol + " failed", e);
    }

    int call() {
        try {
            return (int) handle.invokeExact();
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a) {
        try {
            return (int) handle.invokeExact(a);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b) {
        try {
            return (int) handle.invokeExact(a, b);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b, long c) {
        try {
            return (int) handle.invokeExact(a, b, c);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b, long c, long d) {
        try {
            return (int) handle.invokeExact(a, b, c, d);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b, long c, long d, long e) {
        try {
            return (int) handle.invokeExact(a, b, c, d, e);
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g) {
        try {
            return (int) handle.invokeExact(a, b, c, d, e, f, g);
        } catch (Throwable t) {
            throw broken(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g, long h) {
        try {
            return (int) handle.invokeExact(a, b, c, d, e, f, g, h);
        } catch (Throwable t) {
            throw broken(t);
        }
    }
}
