package dev.weft.fabric;

import java.lang.foreign.Arena;

/** A letter that has arrived, and of a put how much of its rectangle has. The mail thread's. */
final class MpiArrival {

    final MpiLetter letter;
    MpiPieces pieces;
    long address;
    int nextPiece;
    int piecesLeft;

    MpiArrival(Arena arena) {
        letter = new MpiLetter(arena, MpiLetter.BYTES);
    }

    int pieceCount() {
        return pieces == null ? 0 : pieces.count();
    }

    /** A letter without a rectangle. */
    void of(MpiLetter inbox) {
        letter.copyFrom(inbox);
        pieces = null;
        nextPiece = 0;
        piecesLeft = 0;
    }

    /**
     * A put.
     *
     * @param landing where its rectangle lands
     */
    void of(MpiLetter inbox, MpiPieces cut, long landing) {
        letter.copyFrom(inbox);
        pieces = cut;
        address = landing;
        nextPiece = 0;
        piecesLeft = cut.count();
    }
}
