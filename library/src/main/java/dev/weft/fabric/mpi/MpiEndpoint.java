package dev.weft.fabric.mpi;

import dev.weft.fabric.mpi.MpiMessage.Field;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiRequests;
import java.util.LinkedHashMap;

/**
 * Point-to-point calls of MPI: sends and receives messages and the fragments of rectangles. Used
 * only by the progress thread.
 */
final class MpiEndpoint {

    private static final int MESSAGE_TAG = 1;
    private static final int FRAGMENT_TAG = 2;
    private static final int MOST_TYPES = 16;

    private final Mpi mpi;
    private final long comm;
    private final long byteType;
    private final MpiRequests requests;

    /** Datatypes of rectangles with gaps, made when first needed: operators use few shapes. */
    private final LinkedHashMap<Shape, Long> types = new LinkedHashMap<>();

    private record Shape(int rows, int rowBytes, long pitch) {}

    MpiEndpoint(Mpi mpi, long comm, MpiRequests requests) {
        this.mpi = mpi;
        this.comm = comm;
        this.byteType = mpi.byteType();
        this.requests = requests;
    }

    void sendMessage(int request, MpiMessage message, int peer) {
        long at = message.address();
        requests.isend(request, at, message.length(), byteType, peer, MESSAGE_TAG, comm);
    }

    void receiveMessage(int request, MpiMessage received, int peer) {
        long at = received.address();
        requests.irecv(request, at, MpiMessage.MAX_BYTES, byteType, peer, MESSAGE_TAG, comm);
    }

    /** Sends the next fragment of a put. */
    void sendFragment(int request, MpiMessage put, int peer) {
        fragment(true, request, put, put.get(Field.FROM_PITCH), peer);
    }

    /** Receives the next fragment of a put. */
    void receiveFragment(int request, MpiMessage put, int peer) {
        fragment(false, request, put, put.get(Field.TO_PITCH), peer);
    }

    private void fragment(boolean send, int request, MpiMessage put, long pitch, int peer) {
        MpiFragments fragments = put.fragments;
        int fragment = put.nextFragment++;
        long address = put.address + fragments.at(fragment, pitch);
        int rows = fragments.rows(fragment);
        boolean plain = fragments.contiguous();
        int count = plain ? rows : 1;
        long type = plain ? byteType : type(rows, (int) fragments.rowBytes(), pitch);
        if (send) {
            requests.isend(request, address, count, type, peer, FRAGMENT_TAG, comm);
        } else {
            requests.irecv(request, address, count, type, peer, FRAGMENT_TAG, comm);
        }
    }

    /** Frees the datatypes; before MPI ends. */
    void close() {
        types.values().forEach(mpi::freeType);
        types.clear();
    }

    private long type(int rows, int rowBytes, long pitch) {
        Shape shape = new Shape(rows, rowBytes, pitch);
        Long known = types.get(shape);
        if (known != null) {
            return known;
        }
        if (types.size() == MOST_TYPES) {
            // MPI keeps a type for as long as a message needs it.
            mpi.freeType(types.pollFirstEntry().getValue());
        }
        long type = mpi.hvectorType(rows, rowBytes, pitch);
        types.put(shape, type);
        return type;
    }
}
