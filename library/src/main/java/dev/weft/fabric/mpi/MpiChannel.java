package dev.weft.fabric.mpi;

import dev.weft.ffi.MpiRequests;
import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Objects;

/**
 * The connection to one rank on another host, with its send queue. Any thread may take a {@link
 * #newMessage} and {@link #send} it; all else is for the progress thread. Messages take effect in
 * the order in which they were sent: a word that was sent after a rectangle is set after the
 * rectangle has arrived.
 *
 * <p>Requests of a channel, from {@link #firstRequest} on: sends, the receive of messages, the
 * receives of fragments.
 */
final class MpiChannel {

    private static final int SENDS = 32;
    private static final int RECEIVES = 32;

    /** The most requests that one channel has under way. */
    static final int REQUESTS = SENDS + 1 + RECEIVES;

    private static final int MESSAGE_RECEIVE = SENDS;

    final int peer;
    final int firstRequest;

    /** The message that was received last. */
    final MpiMessage received;

    private final Arena arena;
    private final ArrayDeque<MpiMessage> free = new ArrayDeque<>();
    private final ArrayDeque<MpiMessage> sendQueue = new ArrayDeque<>();

    /** The put whose fragments are being handed to MPI; null if none. */
    private MpiMessage sending;

    /** By request: what it sends. */
    private final MpiMessage[] sends = new MpiMessage[SENDS];

    private final ArrayDeque<MpiArrival> arrivals = new ArrayDeque<>();
    private final ArrayDeque<MpiArrival> freeArrivals = new ArrayDeque<>();

    /** By request: of what it receives a fragment. */
    private final MpiArrival[] receives = new MpiArrival[RECEIVES];

    /** The length of the send queue, for those who do not hold the lock. */
    private volatile int queued;

    MpiChannel(int peer, int firstRequest, Arena arena) {
        this.peer = peer;
        this.firstRequest = firstRequest;
        this.arena = arena;
        this.received = new MpiMessage(arena, MpiMessage.MAX_BYTES);
    }

    /** An empty message to fill and send. Messages are reused once they have been sent. */
    synchronized MpiMessage newMessage() {
        MpiMessage message = free.poll();
        return message == null ? new MpiMessage(arena, MpiMessage.MAX_BYTES) : message;
    }

    synchronized void send(MpiMessage message) {
        sendQueue.add(message);
        queued = sendQueue.size();
    }

    /** Sends ahead of the queue; for messages whose order does not matter. */
    synchronized void sendFirst(MpiMessage message) {
        sendQueue.addFirst(message);
        queued = sendQueue.size();
    }

    boolean hasQueued() {
        return queued > 0;
    }

    private synchronized MpiMessage nextQueued() {
        MpiMessage message = sendQueue.poll();
        queued = sendQueue.size();
        return message;
    }

    /** Whether anything is queued or under way, in either direction. */
    boolean isBusy() {
        return sending != null || !arrivals.isEmpty() || hasQueued() || sendsUnderWay();
    }

    private boolean sendsUnderWay() {
        for (MpiMessage message : sends) {
            if (message != null) {
                return true;
            }
        }
        return false;
    }

    /** Whether all that was queued has been handed to MPI. */
    boolean isFlushed() {
        return sending == null && !hasQueued();
    }

    /** Whether a rectangle of the region with that key is still being sent. */
    boolean sendsFrom(long key) {
        for (MpiMessage message : sends) {
            if (message != null && message.isPutFrom(key)) {
                return true;
            }
        }
        synchronized (this) {
            return sending != null && sending.isPutFrom(key)
                    || sendQueue.stream().anyMatch(message -> message.isPutFrom(key));
        }
    }

    /** Starts all sends and receives that can be started. Returns whether there were any. */
    boolean start(MpiEndpoint endpoint) {
        boolean started = startSends(endpoint);
        return startReceives(endpoint) || started;
    }

    private boolean startSends(MpiEndpoint endpoint) {
        boolean started = false;
        for (int request = freeRequest(sends); request >= 0; request = freeRequest(sends)) {
            if (sending == null) {
                MpiMessage message = hasQueued() ? nextQueued() : null;
                if (message == null) {
                    return started;
                }
                sends[request] = message;
                message.sendsLeft = 1 + (message.fragments == null ? 0 : message.fragments.count());
                message.nextFragment = 0;
                endpoint.sendMessage(firstRequest + request, message, peer);
                sending = message.sendsLeft == 1 ? null : message;
            } else {
                sends[request] = sending;
                endpoint.sendFragment(
                        firstRequest + request, sending, sending.nextFragment++, peer);
                sending = sending.nextFragment == sending.fragments.count() ? null : sending;
            }
            started = true;
        }
        return started;
    }

    private static int freeRequest(Object[] requests) {
        for (int request = 0; request < requests.length; request++) {
            if (requests[request] == null) {
                return request;
            }
        }
        return -1;
    }

    /** Starts to receive the next message. */
    void receiveMessage(MpiEndpoint endpoint) {
        endpoint.receiveMessage(firstRequest + MESSAGE_RECEIVE, received, peer);
    }

    /** Stops receiving: no further message will come. */
    void cancelReceive(MpiRequests requests) {
        if (!requests.isFree(firstRequest + MESSAGE_RECEIVE)) {
            requests.cancel(firstRequest + MESSAGE_RECEIVE);
            requests.free(firstRequest + MESSAGE_RECEIVE);
        }
    }

    private boolean startReceives(MpiEndpoint endpoint) {
        boolean started = false;
        for (MpiArrival arrival : arrivals) {
            while (arrival.nextFragment < arrival.fragmentCount()) {
                int request = freeRequest(receives);
                if (request < 0) {
                    return started;
                }
                receives[request] = arrival;
                int at = firstRequest + MESSAGE_RECEIVE + 1 + request;
                endpoint.receiveFragment(at, arrival, arrival.nextFragment++, peer);
                started = true;
            }
        }
        return started;
    }

    /** Whether the request receives a message. */
    boolean isMessageReceive(int request) {
        return request - firstRequest == MESSAGE_RECEIVE;
    }

    /** Whether the request sends or receives rows. */
    boolean movesRows(int request) {
        return isFragmentReceive(request) || sends[request - firstRequest].fragments != null;
    }

    /** Whether the request receives a fragment of a rectangle. */
    boolean isFragmentReceive(int request) {
        return request - firstRequest > MESSAGE_RECEIVE;
    }

    /** Takes note of a completed request. Returns the message that is now wholly sent, or null. */
    MpiMessage completed(int request) {
        int index = request - firstRequest;
        if (index > MESSAGE_RECEIVE) {
            MpiArrival arrival = receives[index - MESSAGE_RECEIVE - 1];
            receives[index - MESSAGE_RECEIVE - 1] = null;
            arrival.fragmentsLeft--;
            return null;
        }
        MpiMessage message = sends[index];
        sends[index] = null;
        return --message.sendsLeft == 0 ? message : null;
    }

    /** Takes a sent message back. */
    synchronized void recycle(MpiMessage message) {
        message.mover = null;
        free.add(message);
    }

    /** A new arrival, which takes effect after all before it. */
    MpiArrival newArrival() {
        MpiArrival arrival = freeArrivals.poll();
        arrival = arrival == null ? new MpiArrival(arena) : arrival;
        arrivals.add(arrival);
        return arrival;
    }

    /** Removes and returns the next arrival that can take effect, or null. */
    MpiArrival nextComplete() {
        MpiArrival first = arrivals.peek();
        return first != null && first.fragmentsLeft == 0 ? arrivals.poll() : null;
    }

    void recycle(MpiArrival arrival) {
        freeArrivals.add(arrival);
    }

    @Override
    public String toString() {
        long underWay = Arrays.stream(sends).filter(Objects::nonNull).count();
        return "channel to rank %s: %s messages queued, %s sends under way, %s arrivals"
                .formatted(peer, queued, underWay, arrivals.size());
    }
}
