package dev.weft.fabric.mpi;

import dev.weft.ffi.MpiRequests;
import java.lang.foreign.Arena;
import java.util.ArrayDeque;

/**
 * The connection to one rank on another host, with its send queue. Any thread may take a {@link
 * #newMessage} and {@link #send} it; the rest is for the progress thread. Messages take effect in
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

    /** Received messages that have not taken effect. */
    private final ArrayDeque<MpiMessage> arrivals = new ArrayDeque<>();

    private final ArrayDeque<MpiMessage> freeArrivals = new ArrayDeque<>();

    /** By request: the message whose fragment it receives. */
    private final MpiMessage[] receives = new MpiMessage[RECEIVES];

    /** The length of the send queue, readable without the lock. */
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

    /** Sends a message without a rectangle. */
    void send(int kind, long key, long at, int value, long wide) {
        MpiMessage message = newMessage();
        message.set(kind, key, at, value, wide);
        send(message);
    }

    synchronized void send(MpiMessage message) {
        sendQueue.add(message);
        queued = sendQueue.size();
    }

    /** Sends before the queue; for messages whose order does not matter. */
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

    /** Whether everything that was queued has been given to MPI. */
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
                message.left = 1 + message.fragmentCount();
                endpoint.sendMessage(firstRequest + request, message, peer);
                sending = message.left == 1 ? null : message;
            } else {
                sends[request] = sending;
                endpoint.sendFragment(firstRequest + request, sending, peer);
                sending = sending.nextFragment == sending.fragmentCount() ? null : sending;
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

    /** Stops receiving: no further message will arrive. */
    void cancelReceive(MpiRequests requests) {
        if (!requests.isFree(firstRequest + MESSAGE_RECEIVE)) {
            requests.cancel(firstRequest + MESSAGE_RECEIVE);
            requests.free(firstRequest + MESSAGE_RECEIVE);
        }
    }

    private boolean startReceives(MpiEndpoint endpoint) {
        boolean started = false;
        for (MpiMessage arrival : arrivals) {
            while (arrival.nextFragment < arrival.fragmentCount()) {
                int request = freeRequest(receives);
                if (request < 0) {
                    return started;
                }
                receives[request] = arrival;
                int at = firstRequest + MESSAGE_RECEIVE + 1 + request;
                endpoint.receiveFragment(at, arrival, peer);
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

    /** Notes a completed request. Returns the message that is now completely sent, or null. */
    MpiMessage completed(int request) {
        int index = request - firstRequest;
        if (index > MESSAGE_RECEIVE) {
            receives[index - MESSAGE_RECEIVE - 1].left--;
            receives[index - MESSAGE_RECEIVE - 1] = null;
            return null;
        }
        MpiMessage message = sends[index];
        sends[index] = null;
        return --message.left == 0 ? message : null;
    }

    /** Takes a sent message back. */
    synchronized void recycle(MpiMessage message) {
        message.mover = null;
        free.add(message);
    }

    /** Makes an arrival of the received message, which takes effect after all before it. */
    MpiMessage newArrival() {
        MpiMessage arrival = freeArrivals.poll();
        arrival = arrival == null ? new MpiMessage(arena, MpiMessage.BYTES) : arrival;
        arrival.copyFrom(received);
        arrivals.add(arrival);
        return arrival;
    }

    /** Removes and returns the next arrival that can take effect, or null. */
    MpiMessage nextComplete() {
        MpiMessage first = arrivals.peek();
        return first != null && first.left == 0 ? arrivals.poll() : null;
    }

    void recycleArrival(MpiMessage arrival) {
        freeArrivals.add(arrival);
    }
}
