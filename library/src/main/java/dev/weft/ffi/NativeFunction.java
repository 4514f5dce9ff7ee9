package dev.weft.ffi;

import java.lang.invoke.MethodHandle;

/**
 * A bound function that returns a code, 0 for success. There is one {@code call} per shape of
 * parameters that the libraries use; pointers and sizes are passed as longs. Held in a static final
 * field the handle is a constant for the compiler (a record's fields are trusted), so that a call
 * allocates nothing. Any thread may call.
 */
record NativeFunction(BoundLibrary library, String symbol, MethodHandle handle) {

    /** A code other than 0, as an exception; the caller throws it. */
    CudaException failed(int code, String arguments) {
        return failed(code, arguments, "");
    }

    CudaException failed(int code, String arguments, String detail) {
        return new CudaException(
                library.name(),
                // cuMemAlloc_v2 is what the headers let everyone call cuMemAlloc.
                symbol.replaceFirst("_v\\d$", ""),
                arguments,
                code,
                library.codeName(code),
                detail);
    }

    /** An address for an error text. */
    static String hex(long address) {
        return "0x" + Long.toHexString(address);
    }

    /** What the handle has thrown: a missing function's reason as it is, all else wrapped. */
    IllegalStateException broken(Throwable e) {
        if (e instanceof Error error) {
            throw error;
        }
        return e instanceof IllegalStateException missing
                ? missing
                : new IllegalStateException(library.name() + ": " + symbol + " failed", e);
    }

    int call(int a) {
        try {
            return (int) handle.invokeExact(a);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(int a, long b) {
        try {
            return (int) handle.invokeExact(a, b);
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

    int call(long a, int b) {
        try {
            return (int) handle.invokeExact(a, b);
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

    int call(long a, int b, int c) {
        try {
            return (int) handle.invokeExact(a, b, c);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, int b, long c) {
        try {
            return (int) handle.invokeExact(a, b, c);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b, int c) {
        try {
            return (int) handle.invokeExact(a, b, c);
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

    int call(long a, int b, long c, long d) {
        try {
            return (int) handle.invokeExact(a, b, c, d);
        } catch (Throwable e) {
            throw broken(e);
        }
    }

    int call(long a, long b, int c, int d) {
        try {
            return (int) handle.invokeExact(a, b, c, d);
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
}
