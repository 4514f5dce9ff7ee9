package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;

/**
 * The process's MPI library, loaded when this class is first used, and its functions as constants;
 * where loading fails, the reason is kept and every call throws it.
 */
final class MpiCalls {

    private static final String HOW_TO_GET_IT =
            "Debian: openmpi-bin libopenmpi3, or mpich; another library: -D%s=PATH or %s=PATH"
                    .formatted(MpiLibrary.PROPERTY, MpiLibrary.VARIABLE);

    static final BoundLibrary BOUND;
    private static final MpiLibrary LIBRARY;

    static {
        MpiLibrary[] found = new MpiLibrary[1];
        BOUND =
                BoundLibrary.load(
                        "MPI",
                        HOW_TO_GET_IT,
                        MpiCalls::errorText,
                        () -> {
                            found[0] = load();
                            return found[0].symbols();
                        });
        LIBRARY = found[0];
    }

    private static final MemoryLayout POINTER = JAVA_LONG;
    private static final MemoryLayout INT = JAVA_INT;
    private static final MemoryLayout HANDLE = LIBRARY == null ? INT : family().handleLayout();

    static final MpiFunction INIT_THREAD = bind("MPI_Init_thread", POINTER, POINTER, INT, POINTER);
    static final MpiFunction INITIALIZED = bind("MPI_Initialized", POINTER);
    static final MpiFunction FINALIZED = bind("MPI_Finalized", POINTER);
    static final MpiFunction FINALIZE = bind("MPI_Finalize");
    static final MpiFunction QUERY_THREAD = bind("MPI_Query_thread", POINTER);
    static final MpiFunction ABORT = bind("MPI_Abort", HANDLE, INT);
    static final MpiFunction RANK = bind("MPI_Comm_rank", HANDLE, POINTER);
    static final MpiFunction SIZE = bind("MPI_Comm_size", HANDLE, POINTER);
    static final MpiFunction DUPLICATE = bind("MPI_Comm_dup", HANDLE, POINTER);
    static final MpiFunction SPLIT_TYPE =
            bind("MPI_Comm_split_type", HANDLE, INT, INT, HANDLE, POINTER);
    static final MpiFunction FREE_COMM = bind("MPI_Comm_free", POINTER);
    static final MpiFunction SET_ERROR_HANDLER = bind("MPI_Comm_set_errhandler", HANDLE, HANDLE);
    static final MpiFunction BARRIER = bind("MPI_Barrier", HANDLE);
    static final MpiFunction BROADCAST = bind("MPI_Bcast", POINTER, INT, HANDLE, INT, HANDLE);
    static final MpiFunction ALLGATHER =
            bind("MPI_Allgather", POINTER, INT, HANDLE, POINTER, INT, HANDLE, HANDLE);
    static final MpiFunction ALLGATHERV =
            bind("MPI_Allgatherv", POINTER, INT, HANDLE, POINTER, POINTER, POINTER, HANDLE, HANDLE);
    static final MpiFunction CREATE_CONTIGUOUS = bind("MPI_Type_contiguous", INT, HANDLE, POINTER);
    static final MpiFunction CREATE_HVECTOR =
            bind("MPI_Type_create_hvector", INT, INT, POINTER, HANDLE, POINTER);
    static final MpiFunction COMMIT_TYPE = bind("MPI_Type_commit", POINTER);
    static final MpiFunction FREE_TYPE = bind("MPI_Type_free", POINTER);
    static final MpiFunction ISEND =
            bind("MPI_Isend", POINTER, INT, HANDLE, INT, INT, HANDLE, POINTER);
    static final MpiFunction IRECV =
            bind("MPI_Irecv", POINTER, INT, HANDLE, INT, INT, HANDLE, POINTER);
    static final MpiFunction TEST_SOME =
            bind("MPI_Testsome", INT, POINTER, POINTER, POINTER, POINTER);
    static final MpiFunction CANCEL = bind("MPI_Cancel", POINTER);
    static final MpiFunction TEST_CANCELLED = bind("MPI_Test_cancelled", POINTER, POINTER);
    static final MpiFunction FREE_REQUEST = bind("MPI_Request_free", POINTER);
    static final MpiFunction GET_ELEMENTS = bind("MPI_Get_elements_x", POINTER, HANDLE, POINTER);
    private static final MpiFunction ERROR_CLASS = bind("MPI_Error_class", INT, POINTER);
    private static final MpiFunction ERROR_STRING = bind("MPI_Error_string", INT, POINTER, POINTER);

    /** Four times the longest text that any family's header announces. */
    private static final int ERROR_BYTES = 2048;

    private MpiCalls() {}

    private static MpiLibrary load() {
        try {
            String given =
                    System.getProperty(MpiLibrary.PROPERTY, System.getenv(MpiLibrary.VARIABLE));
            return MpiLibrary.load(given, System.getenv());
        } catch (RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("MPI cannot be loaded", e);
        }
    }

    private static MpiFunction bind(String symbol, MemoryLayout... parameters) {
        return MpiFunction.bind(BOUND, symbol, parameters);
    }

    static MpiLibrary library() {
        return LIBRARY;
    }

    static MpiFamily family() {
        return LIBRARY.family();
    }

    /** Codes are the library's own; their classes are those of the family's table. */
    static int errorClass(int code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            return ERROR_CLASS.call(code, out.address()) == 0 ? out.get(JAVA_INT, 0) : code;
        }
    }

    /** The text on one line: MPICH gives several. */
    static String errorText(int code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(ERROR_BYTES);
            MemorySegment length = arena.allocate(JAVA_INT);
            if (ERROR_STRING.call(code, text.address(), length.address()) != 0) {
                return "(a code that this library has no text for)";
            }
            return text.getString(0).strip().replaceAll("\\s*\\R\\s*", " | ");
        }
    }
}
