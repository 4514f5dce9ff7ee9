package dev.weft.fabric;

import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiRequests;

/** Letters and rectangles as messages of MPI. The mail thread's. */
final class MpiPost {

    private static final int LETTERS = 1;
    private static final int RECTANGLES = 2;

    private final Mpi mpi;
    private final long comm;
    private final MpiRequests requests;

    /** Types of rectangles with gaps, made when first needed and kept: operators use few shapes. */
    private Shape[] shapes = new Shape[16];

    private int shapeCount;

    private record Shape(int rows, int rowBytes, long pitch, long type) {}

    MpiPost(Mpi mpi, long comm, MpiRequests requests) {
        this.mpi = mpi;
        this.comm = comm;
        this.requests = requests;
    }

    void sendLetter(int slot, MpiLetter letter, int peer) {
        requests.isend(
                slot, letter.address(), letter.length(), mpi.byteType(), peer, LETTERS, comm);
    }

    void receiveLetter(int slot, MpiLetter inbox, int peer) {
        requests.irecv(
                slot, inbox.address(), MpiLetter.MAX_BYTES, mpi.byteType(), peer, LETTERS, comm);
    }

    void sendPiece(int slot, MpiLetter put, int piece, int peer) {
        MpiPieces pieces = put.pieces;
        long pitch = put.fromPitch();
        long address = put.address + pieces.at(piece, pitch);
        int rows = pieces.rows(piece);
        boolean plain = pieces.contiguous();
        long type = plain ? mpi.byteType() : type(rows, (int) pieces.rowBytes(), pitch);
        requests.isend(slot, address, plain ? rows : 1, type, peer, RECTANGLES, comm);
    }

    void receivePiece(int slot, MpiArrival put, int piece, int peer) {
        MpiPieces pieces = put.pieces;
        long pitch = put.letter.toPitch();
        long address = put.address + pieces.at(piece, pitch);
        int rows = pieces.rows(piece);
        boolean plain = pieces.contiguous();
        long type = plain ? mpi.byteType() : type(rows, (int) pieces.rowBytes(), pitch);
        requests.irecv(slot, address, plain ? rows : 1, type, peer, RECTANGLES, comm);
    }

    /** Gives the types back; before MPI ends. */
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
