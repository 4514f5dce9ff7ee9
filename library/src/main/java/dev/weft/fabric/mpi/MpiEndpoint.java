package dev.weft.fabric.mpi;

import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiRequests;

/**
 * Point-to-point calls of MPI: sends and receives messages and the fragments of rectangles. Used by
 * the progress thread alone.
 */
final class MpiEndpoint {

    private static final int MESSAGE_TAG = 1;
    private static final int FRAGMENT_TAG = 2;

    private final Mpi mpi;
    private final long comm;
    private final MpiRequests requests;

    /** Datatypes of rectangles with gaps, made when first needed: operators use few shapes. */
    private Shape[] shapes = new Shape[16];

    private int shapeCount;

    private record Shape(int rows, int rowBytes, long pitch, long type) {}

    MpiEndpoint(Mpi mpi, long comm, MpiRequests requests) {
        this.mpi = mpi;
        this.comm = comm;
        this.requests = requests;
    }

    void sendMessage(int request, MpiMessage message, int peer) {
        requests.isend(
                request,
                message.address(),
                message.length(),
                mpi.byteType(),
                peer,
                MESSAGE_TAG,
                comm);
    }

    void receiveMessage(int request, MpiMessage received, int peer) {
        requests.irecv(
                request,
                received.address(),
                MpiMessage.MAX_BYTES,
                mpi.byteType(),
                peer,
                MESSAGE_TAG,
                comm);
    }

    void sendFragment(int request, MpiMessage put, int fragment, int peer) {
        MpiFragments fragments = put.fragments;
        long pitch = put.fromPitch();
        long address = put.address + fragments.at(fragment, pitch);
        int rows = fragments.rows(fragment);
        boolean plain = fragments.contiguous();
        long type = plain ? mpi.byteType() : type(rows, (int) fragments.rowBytes(), pitch);
        requests.isend(request, address, plain ? rows : 1, type, peer, FRAGMENT_TAG, comm);
    }

    void receiveFragment(int request, MpiArrival put, int fragment, int peer) {
        MpiFragments fragments = put.fragments;
        long pitch = put.message.toPitch();
        long address = put.address + fragments.at(fragment, pitch);
        int rows = fragments.rows(fragment);
        boolean plain = fragments.contiguous();
        long type = plain ? mpi.byteType() : type(rows, (int) fragments.rowBytes(), pitch);
        requests.irecv(request, address, plain ? rows : 1, type, peer, FRAGMENT_TAG, comm);
    }

    /** Frees the datatypes; before MPI ends. */
    void close() {
        for (int i = 0; i < shapeCount; i++) {
            mpi.freeType(shapes[i].type);
        }
        shapeCount = 0;
    }

    private long type(int rows, int rowBytes, long pitch) {
        for (int i = 0; i < shapeCount; i++) {
            Shape shape = shapes[i];
            if (shape.rows == rows && shape.rowBytes == rowBytes && shape.pitch == pitch) {
                return shape.type;
            }
        }
        if (shapeCount == shapes.length) {
            // The oldest half goes: MPI keeps a type for as long as a message needs it.
            int kept = shapes.length / 2;
            for (int i = 0; i < kept; i++) {
                mpi.freeType(shapes[i].type);
            }
            System.arraycopy(shapes, kept, shapes, 0, shapes.length - kept);
            shapeCount -= kept;
        }
        Shape made = new Shape(rows, rowBytes, pitch, mpi.hvectorType(rows, rowBytes, pitch));
        shapes[shapeCount++] = made;
        return made.type;
    }
}
