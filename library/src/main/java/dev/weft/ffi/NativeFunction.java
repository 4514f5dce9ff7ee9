package dev.weft.ffi;

import java.lang.invoke.MethodHandle;
import java.util.stream.LongStream;

/**
 * A bound function that returns a code, 0 for success. Every argument is passed as a long and
 * narrowed to the width in the function's signature, so that there is one {@code call} per number
 * of arguments. In a static final field the handle is a constant for the compiler (a record's
 * fields are trusted), so that a call allocates nothing. Thread-safe.
 */
record NativeFunction(BoundLibrary library, String symbol, MethodHandle handle) {

    /** A code other than 0, as an exception; the caller throws it. */
    NativeCallException failed(int code, String arguments) {
        return failed(code, arguments, "");
    }

    NativeCallException failed(int code, String arguments, String detail) {
        return new NativeCallException(
                library.name(),
                // The headers let everyone call cuMemAlloc_v2 as cuMemAlloc.
                symbol.replaceFirst("_v\\d$", ""),
                arguments,
                code,
                library.codeName(code),
                detail);
    }

    void check(int code, String arguments) {
        if (code != 0) {
            throw failed(code, arguments);
        }
    }

    /** An address for an error text. */
    static String hex(long address) {
        return "0x" + Long.toHexString(address);
    }

    IllegalStateException broken(Throwable e) {
        return library.broken(symbol, e);
    }

    /**
     * Calls it and throws if it fails.
     *
     * @param arguments a format that describes them in an error
     */
    void run(String arguments, long a) {
        int code = call(a);
        if (code != 0) {
            throw failed(code, arguments.formatted(a));
        }
    }

    void run(String arguments, long a, long b) {
        int code = call(a, b);
        if (code != 0) {
            throw failed(code, arguments.formatted(a, b));
        }
    }

    void run(String arguments, long a, long b, long c) {
        int code = call(a, b, c);
        if (code != 0) {
            throw failed(code, arguments.formatted(a, b, c));
        }
    }

    void run(String arguments, long a, long b, long c, long d) {
        int code = call(a, b, c, d);
        if (code != 0) {
            throw failed(code, arguments.formatted(a, b, c, d));
        }
    }

    /** Like {@link #run}, for any number of arguments; it allocates. */
    void runRarely(String arguments, long... values) {
        int code = callRarely(values);
        if (code != 0) {
            throw failed(code, arguments.formatted(LongStream.of(values).boxed().toArray()));
        }
    }

    /** For any number of arguments; it allocates. */
    int callRarely(long... arguments) {
        try {
            return (int) handle.asSpreader(long[].class, arguments.length).invokeExact(arguments);
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
