package dev.weft.ffi;

/**
 * A call to MPI failed. The message names library, function, arguments, code and what the library
 * has to say about it, for example {@code Open MPI: MPI_Comm_rank(comm 0x7f) failed: 5
 * MPI_ERR_COMM: invalid communicator}.
 */
public final class MpiException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final String function;
    private final int code;
    private final String text;

    public MpiException(String library, String function, String arguments, int code, String text) {
        super(library + ": " + function + "(" + arguments + ") failed: " + code + " " + text);
        this.function = function;
        this.code = code;
        this.text = text;
    }

    /** For example {@code MPI_Isend}. */
    public String function() {
        return function;
    }

    /** The error code, which differs between libraries. */
    public int code() {
        return code;
    }

    /** The text of MPI_Error_string for the code, on one line. */
    public String text() {
        return text;
    }
}
