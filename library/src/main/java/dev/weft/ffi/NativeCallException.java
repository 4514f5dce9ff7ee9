package dev.weft.ffi;

/**
 * A call to a native library failed. The message names library, function, arguments, code and the
 * code's name, for example {@code libcuda: cuMemAlloc(1099511627776 bytes) failed: 2
 * CUDA_ERROR_OUT_OF_MEMORY}.
 */
public final class NativeCallException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * @param name what the library calls the code
     * @param detail details from the library, for example a compiler's log; may be empty and may
     *     have several lines
     */
    NativeCallException(
            String library,
            String function,
            String arguments,
            int code,
            String name,
            String detail) {
        super(
                "%s: %s(%s) failed: %s %s%s"
                        .formatted(
                                library,
                                function,
                                arguments,
                                code,
                                name,
                                detail.isEmpty() ? "" : "\n" + detail));
    }
}
