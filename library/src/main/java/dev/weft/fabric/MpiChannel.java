package dev.weft.fabric;

import dev.weft.ffi.MpiRequests;
import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.Arrays;

/**
 * The two-way traffic with one rank on another host. Any thread may {@link #take} a letter and
 * {@link #post} it; all else is the mail thread's. Letters arrive in the order in which they were
 * posted, and take effect in that order: a word that was posted after a rectangle is set after it
 * has landed.
 *
 * <p>Request slots of a channel, from {@link #firstSlot} on: sends, then the receive of letters,
 * then the receives of rectangles' messages.
 */
final class MpiChannel {

    private static final int SENDS = 32;
    private static final int RECEIVES = 32;

    /** Requests that one channel may have under way. */
    static final int SLOTS = SENDS + 1 + RECEIVES;

    private static final int LETTER_SLOT = SENDS;

    final int peer;
    final int firstSlot;
    final MpiLetter inbox;

    private final Arena arena;
    private final ArrayDeque<MpiLetter> free = new ArrayDeque<>();
    private final ArrayDeque<MpiLetter> posted = new ArrayDeque<>();

    /** The put whose messages are being handed to MPI. */
    private MpiLetter sending;

    private final MpiLetter[] sender = new MpiLetter[SENDS];
    private final ArrayDeque<MpiArrival> arrivals = new ArrayDeque<>();
    private final ArrayDeque<MpiArrival> freeArrivals = new ArrayDeque<>();
    private final MpiArrival[] receiver = new MpiArrival[RECEIVES];
    private volatile int queued;

    MpiChannel(int peer, int firstSlot, Arena arena) {
        this.peer = peer;
        this.firstSlot = firstSlot;
        this.arena = arena;
        this.inbox = new MpiLetter(arena, MpiLetter.MAX_BYTES);
    }

    /** A blank letter; posted letters come back when they have gone. */
    synchronized MpiLetter take() {
        MpiLetter letter = free.poll();
        return letter == null ? new MpiLetter(arena, MpiLetter.MAX_BYTES) : letter;
    }

    synchronized void post(MpiLetter letter) {
        posted.add(letter);
        queued = posted.size();
    }

    /** Ahead of what others have posted; for letters that take effect out of order anyway. */
    synchronized void postAhead(MpiLetter letter) {
        posted.addFirst(letter);
        queued = posted.size();
    }

    boolean hasPosted() {
        return queued > 0;
    }

    private synchronized MpiLetter nextPosted() {
        MpiLetter letter = posted.poll();
        queued = posted.size();
        return letter;
    }

    private synchronized void recycle(MpiLetter letter) {
        free.add(letter);
    }

    /** Whether anything is on its way that somebody waits for. */
    boolean isBusy() {
        return sending != null || !arrivals.isEmpty() || hasPosted() || sendsUnderWay();
    }

    private boolean sendsUnderWay() {
        for (MpiLetter letter : sender) {
            if (letter != null) {
                return true;
            }
        }
        return false;
    }

    /** Whether all that was posted has been handed to MPI. */
    boolean allWithMpi() {
        return sending == null && !hasPosted();
    }

    /** Whether a rectangle of the region with that key is still to be sent. */
    boolean sendsFrom(long key) {
        for (MpiLetter letter : sender) {
            if (letter != null && letter.isPutFrom(key)) {
                return true;
            }
        }
        synchronized (this) {
            return sending != null && sending.isPutFrom(key)
                    || posted.stream().anyMatch(letter -> letter.isPutFrom(key));
        }
    }

    /** Starts what can be started; whether there was anything. */
    boolean pump(MpiPost post) {
        boolean moved = pumpSends(post);
        return pumpReceives(post) || moved;
    }

    private boolean pumpSends(MpiPost post) {
        boolean moved = false;
        for (int slot = freeSlot(sender); slot >= 0; slot = freeSlot(sender)) {
            if (sending == null) {
                MpiLetter letter = hasPosted() ? nextPosted() : null;
                if (letter == null) {
                    return moved;
                }
                sender[slot] = letter;
                letter.sendsLeft = 1 + (letter.pieces == null ? 0 : letter.pieces.count());
                letter.nextPiece = 0;
                post.sendLetter(firstSlot + slot, letter, peer);
                sending = letter.sendsLeft == 1 ? null : letter;
            } else {
                sender[slot] = sending;
                post.sendPiece(firstSlot + slot, sending, sending.nextPiece++, peer);
                sending = sending.nextPiece == sending.pieces.count() ? null : sending;
            }
            moved = true;
        }
        return moved;
    }

    private static int freeSlot(Object[] slots) {
        for (int slot = 0; slot < slots.length; slot++) {
            if (slots[slot] == null) {
                return slot;
            }
        }
        return -1;
    }

    void receiveLetter(MpiPost post) {
        post.receiveLetter(firstSlot + LETTER_SLOT, inbox, peer);
    }

    /** No letter comes any more. */
    void cancelReceive(MpiRequests requests) {
        if (!requests.isFree(firstSlot + LETTER_SLOT)) {
            requests.cancel(firstSlot + LETTER_SLOT);
            requests.free(firstSlot + LETTER_SLOT);
        }
    }

    private boolean pumpReceives(MpiPost post) {
        boolean moved = false;
        for (MpiArrival arrival : arrivals) {
            while (arrival.nextPiece < arrival.pieceCount()) {
                int slot = freeSlot(receiver);
                if (slot < 0) {
                    return moved;
                }
                receiver[slot] = arrival;
                int at = firstSlot + LETTER_SLOT + 1 + slot;
                post.receivePiece(at, arrival, arrival.nextPiece++, peer);
                moved = true;
            }
        }
        return moved;
    }

    boolean isLetterSlot(int slot) {
        return slot - firstSlot == LETTER_SLOT;
    }

    /** Whether the request is of a rectangle, in either direction. */
    boolean movesRows(int slot) {
        return isReceiveSlot(slot) || sender[slot - firstSlot].pieces != null;
    }

    /** Whether it receives a message of a rectangle. */
    boolean isReceiveSlot(int slot) {
        return slot - firstSlot > LETTER_SLOT;
    }

    /** A request has completed. Returns the put whose last message has gone, or null. */
    MpiLetter completed(int slot) {
        int index = slot - firstSlot;
        if (index > LETTER_SLOT) {
            MpiArrival arrival = receiver[index - LETTER_SLOT - 1];
            receiver[index - LETTER_SLOT - 1] = null;
            arrival.piecesLeft--;
            return null;
        }
        MpiLetter letter = sender[index];
        sender[index] = null;
        return --letter.sendsLeft == 0 ? letter : null;
    }

    /** The put, or other letter, has been told of. */
    void gone(MpiLetter letter) {
        letter.courier = null;
        recycle(letter);
    }

    /** A letter that takes effect when all before it have. */
    MpiArrival arrive() {
        MpiArrival arrival = freeArrivals.poll();
        arrival = arrival == null ? new MpiArrival(arena) : arrival;
        arrivals.add(arrival);
        return arrival;
    }

    /** The next arrival that can take effect, or null. */
    MpiArrival complete() {
        MpiArrival first = arrivals.peek();
        return first != null && first.piecesLeft == 0 ? arrivals.poll() : null;
    }

    void applied(MpiArrival arrival) {
        freeArrivals.add(arrival);
    }

    @Override
    public String toString() {
        return "channel to rank "
                + peer
                + ": "
                + queued
                + " letters posted, "
                + Arrays.stream(sender).filter(letter -> letter != null).count()
                + " sends under way, "
                + arrivals.size()
                + " arrivals";
    }
}
