package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The process's MPI library, loaded when this class is first used, and its functions as constants;
 * if loading fails, the reason is kept and every call throws it.
 */
final class MpiCalls {

    private static final String HOW_TO_GET_IT =
            "Debian: openmpi-bin libopenmpi3, or mpich; another library: -D%s=PATH or %s=PATH"
                    .formatted(MpiLibrary.PROPERTY, MpiLibrary.VARIABLE);

    static final BoundLibrary BOUND;
    private static final MpiLibrary LIBRARY;

    static {
        MpiLibrary[] found = new MpiLibrary[1];
        BoundLibrary library =
                BoundLibrary.load(
                        "MPI",
                        HOW_TO_GET_IT,
                        MpiCalls::errorText,
                        () -> {
                            String given =
                                    System.getProperty(
                                            MpiLibrary.PROPERTY,
                                            System.getenv(MpiLibrary.VARIABLE));
                            found[0] = MpiLibrary.load(given, System.getenv());
                            return found[0].symbols();
                        });
        LIBRARY = found[0];
        BOUND = LIBRARY == null ? library : library.named(LIBRARY.family().label());
    }

    static final NativeFunction INIT_THREAD = bind("MPI_Init_thread", "PPIP");
    static final NativeFunction INITIALIZED = bind("MPI_Initialized", "P");
    static final NativeFunction FINALIZED = bind("MPI_Finalized", "P");
    static final NativeFunction FINALIZE = bind("MPI_Finalize", "");
    static final NativeFunction QUERY_THREAD = bind("MPI_Query_thread", "P");
    static final NativeFunction RANK = bind("MPI_Comm_rank", "HP");
    static final NativeFunction SIZE = bind("MPI_Comm_size", "HP");
    static final NativeFunction DUPLICATE = bind("MPI_Comm_dup", "HP");
    static final NativeFunction SPLIT_TYPE = bind("MPI_Comm_split_type", "HIIHP");
    static final NativeFunction FREE_COMM = bind("MPI_Comm_free", "P");
    static final NativeFunction SET_ERROR_HANDLER = bind("MPI_Comm_set_errhandler", "HH");
    static final NativeFunction BARRIER = bind("MPI_Barrier", "H");
    static final NativeFunction BROADCAST = bind("MPI_Bcast", "PIHIH");
    static final NativeFunction ALLGATHER = bind("MPI_Allgather", "PIHPIHH");
    static final NativeFunction ALLGATHERV = bind("MPI_Allgatherv", "PIHPPPHH");
    static final NativeFunction CREATE_CONTIGUOUS = bind("MPI_Type_contiguous", "IHP");
    static final NativeFunction CREATE_HVECTOR = bind("MPI_Type_create_hvector", "IIPHP");
    static final NativeFunction COMMIT_TYPE = bind("MPI_Type_commit", "P");
    static final NativeFunction FREE_TYPE = bind("MPI_Type_free", "P");
    static final NativeFunction ISEND = bind("MPI_Isend", "PIHIIHP");
    static final NativeFunction IRECV = bind("MPI_Irecv", "PIHIIHP");
    static final NativeFunction TEST_SOME = bind("MPI_Testsome", "IPPPP");
    static final NativeFunction CANCEL = bind("MPI_Cancel", "P");
    static final NativeFunction FREE_REQUEST = bind("MPI_Request_free", "P");
    static final NativeFunction GET_ELEMENTS = bind("MPI_Get_elements_x", "PHP");
    private static final NativeFunction ERROR_CLASS = bind("MPI_Error_class", "IP");
    private static final NativeFunction ERROR_STRING = bind("MPI_Error_string", "IPP");

    /** Four times the longest text that any family's header announces. */
    private static final int ERROR_BYTES = 2048;

    private MpiCalls() {}

    /**
     * @param parameters as {@link BoundLibrary#function} takes them, and H for a handle
     */
    private static NativeFunction bind(String symbol, String parameters) {
        boolean ints = LIBRARY == null || family().handleLayout().byteSize() == Integer.BYTES;
        return BOUND.function(symbol, parameters.replace('H', ints ? 'I' : 'P'));
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
