package dev.weft.examples.llm;

import dev.weft.cuda.Gpu;
import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;

/**
 * Continues texts, several at the same time: a call of the decoder takes a token of each text under
 * way, and parts of the prompts of new ones. What a text becomes does not depend on the others. A
 * chat whose start is that of an earlier one is not computed again from the start.
 *
 * <p>One thread calls {@link #run}, in each process. Any threads call the rest, in that of rank 0.
 */
public final class Generator implements AutoCloseable {

    /** How soon an idle generator sees that it is closed. */
    private static final int NAP_MS = 20;

    private final Model model;
    private final Decoder.Capacity capacity;
    private final Gpu gpu;
    private final BlockingQueue<Text> waiting = new LinkedBlockingQueue<>();
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final AtomicLong computed = new AtomicLong();
    private volatile boolean closing;

    /**
     * @param capacity for how many tokens and texts at the same time
     */
    public Generator(Model model, Decoder.Capacity capacity) {
        this(model, capacity, null);
    }

    /**
     * @param gpu on which all ranks of this process compute; null for the CPU
     */
    public Generator(Model model, Decoder.Capacity capacity, Gpu gpu) {
        if (capacity.rows() < 1 || capacity.chats() < 1) {
            throw new IllegalArgumentException(capacity + ": expected rows and chats");
        }
        this.model = model;
        this.capacity = capacity;
        this.gpu = gpu;
    }

    /** A text to continue. */
    private record Text(
            int[] prompt,
            int most,
            Sampler sampler,
            IntConsumer listener,
            CompletableFuture<int[]> answer) {}

    /**
     * Asks for what follows a prompt. An answer that is cancelled ends early.
     *
     * @param most tokens at most
     * @param listener hears of each token as soon as it is chosen, in the thread of rank 0, which
     *     must not wait
     * @return the tokens, without the one that ends the text
     * @throws IllegalArgumentException if the prompt is empty, too long or not of the vocabulary
     */
    public CompletableFuture<int[]> submit(
            int[] prompt, int most, Sampler sampler, IntConsumer listener) {
        int longest = Math.min(capacity.longest(), model.shape().longest());
        if (prompt.length == 0 || prompt.length > longest || most < 1) {
            throw new IllegalArgumentException(
                    "%d tokens after a prompt of %d: expected at least 1, and a prompt of 1 to %d"
                            .formatted(most, prompt.length, longest));
        }
        for (int token : prompt) {
            Objects.checkIndex(token, model.shape().vocabulary());
        }
        Text text = new Text(prompt.clone(), most, sampler, listener, new CompletableFuture<>());
        if (!closing) {
            waiting.add(text);
        }
        if (closing || ended.isDone()) {
            // It may have been added after the last look. An answer that is there stays.
            refuse(text);
        }
        return text.answer();
    }

    /** Tokens of prompts and answers whose keys and values were computed so far. */
    public long computed() {
        return computed.get();
    }

    /** Has all texts continued that are there, and then lets {@link #run} return. Takes no more. */
    @Override
    public void close() {
        closing = true;
    }

    /** Runs the ranks of this process until {@link #close}. */
    public void run(World world) {
        try {
            world.run(this::run);
        } catch (Throwable e) {
            ended.completeExceptionally(e);
            throw e;
        } finally {
            ended.complete(null);
            waiting.forEach(this::refuse);
        }
    }

    private void refuse(Text text) {
        Throwable why = ended.isCompletedExceptionally() ? ended.exceptionNow() : null;
        CancellationException refusal = new CancellationException("the generator has ended");
        refusal.initCause(why);
        text.answer().completeExceptionally(refusal);
    }

    private void run(Fabric fabric) throws InterruptedException {
        try (Step.Broadcast broadcast = new Step.Broadcast(fabric, capacity.rows());
                Decoder decoder = Decoder.of(fabric, model, capacity, gpu)) {
            if (fabric.rank() == 0) {
                new Leader(decoder, broadcast).run(fabric.deadline().toMillis() / 3);
                return;
            }
            for (Step step = broadcast.call(null); step != Step.END; step = broadcast.call(null)) {
                if (step.ids().length > 0) {
                    decoder.call(step.ids(), step.rows(), step.wanted());
                }
            }
        }
    }

    /** A place for a text: the keys and values of one chat. */
    private static final class Slot {
        final int chat;

        /** Whose keys and values are there, and after them those to come. */
        final List<Integer> tokens = new ArrayList<>();

        int computed;
        int found;

        /** When it was taken: the number of the text. */
        long taken;

        /** Null if the place is free. */
        Text text;

        Slot(int chat) {
            this.chat = chat;
        }

        int common(int[] prompt) {
            int most = Math.min(computed, prompt.length - 1);
            int same = 0;
            while (same < most && tokens.get(same) == prompt[same]) {
                same++;
            }
            // Little of a long chat is not worth losing the rest.
            return 2 * same > computed ? same : 0;
        }
    }

    /** Rank 0, which decides what all compute. */
    private final class Leader {

        private final Decoder decoder;
        private final Step.Broadcast broadcast;
        private final List<Slot> slots = new ArrayList<>();
        private long texts;

        Leader(Decoder decoder, Step.Broadcast broadcast) {
            this.decoder = decoder;
            this.broadcast = broadcast;
            for (int chat = 0; chat < capacity.chats(); chat++) {
                slots.add(new Slot(chat));
            }
        }

        /**
         * @param idleMs after which the others get an empty step: they wait no longer than the
         *     deadline
         */
        void run(long idleMs) throws InterruptedException {
            try {
                while (true) {
                    boolean last = closing;
                    admit(idleMs);
                    List<Slot> busy = busy();
                    if (busy.isEmpty() && last && waiting.isEmpty()) {
                        broadcast.call(Step.END);
                        return;
                    }
                    step(busy);
                }
            } catch (Throwable e) {
                busy().forEach(slot -> slot.text.answer().completeExceptionally(e));
                throw e;
            }
        }

        private List<Slot> busy() {
            for (Slot slot : slots) {
                if (slot.text != null && slot.text.answer().isDone()) {
                    // Nobody waits for it any more.
                    slot.text = null;
                }
            }
            return slots.stream().filter(slot -> slot.text != null).toList();
        }

        private void admit(long idleMs) throws InterruptedException {
            long endNs = System.nanoTime() + idleMs * 1_000_000;
            boolean idle = busy().isEmpty();
            while (busy().size() < slots.size()) {
                Text next = waiting.poll(idle ? NAP_MS : 0, TimeUnit.MILLISECONDS);
                if (next != null && !next.answer().isDone()) {
                    begin(next);
                    idle = false;
                } else if (next == null && (!idle || closing || System.nanoTime() > endNs)) {
                    return;
                }
            }
        }

        /** In the free place with the longest common start, or in the one unused for longest. */
        private void begin(Text text) {
            Slot best =
                    slots.stream()
                            .filter(slot -> slot.text == null)
                            .max(
                                    Comparator.<Slot>comparingInt(
                                                    slot -> slot.common(text.prompt()))
                                            .thenComparing(slot -> -slot.taken))
                            .orElseThrow();
            best.taken = ++texts;
            best.computed = best.common(text.prompt());
            best.tokens.clear();
            Arrays.stream(text.prompt()).forEach(best.tokens::add);
            best.found = 0;
            best.text = text;
        }

        /** One call: what is one token from its next comes first, then parts of prompts. */
        private void step(List<Slot> busy) {
            List<Integer> ids = new ArrayList<>();
            List<Row> rows = new ArrayList<>();
            List<Integer> wanted = new ArrayList<>();
            List<Slot> asking = new ArrayList<>();
            List<Slot> order = new ArrayList<>(busy);
            order.sort(Comparator.comparingInt(Leader::left));
            for (Slot slot : order) {
                while (slot.computed < slot.tokens.size() && ids.size() < capacity.rows()) {
                    ids.add(slot.tokens.get(slot.computed));
                    rows.add(new Row(slot.chat, slot.computed++));
                }
                if (left(slot) == 0) {
                    wanted.add(ids.size() - 1);
                    asking.add(slot);
                }
            }
            Step step = broadcast.call(new Step(ints(ids), rows.toArray(Row[]::new), ints(wanted)));
            if (ids.isEmpty()) {
                return;
            }
            computed.addAndGet(ids.size());
            float[][] logits = decoder.call(step.ids(), step.rows(), step.wanted());
            for (int i = 0; i < asking.size(); i++) {
                choose(asking.get(i), logits[i]);
            }
        }

        private static int left(Slot slot) {
            return slot.tokens.size() - slot.computed;
        }

        private static int[] ints(List<Integer> list) {
            return list.stream().mapToInt(Integer::intValue).toArray();
        }

        private void choose(Slot slot, float[] logits) {
            Text text = slot.text;
            try {
                int token = text.sampler().next(logits);
                boolean ends = token == model.tokenizer().end();
                if (!ends) {
                    slot.tokens.add(token);
                    slot.found++;
                    text.listener().accept(token);
                }
                if (ends || slot.found == text.most() || slot.tokens.size() > decoder.longest()) {
                    int size = slot.tokens.size();
                    text.answer().complete(ints(slot.tokens.subList(size - slot.found, size)));
                    slot.text = null;
                }
            } catch (RuntimeException e) {
                // Of the listener: it is not the others' fault.
                text.answer().completeExceptionally(e);
                slot.text = null;
            }
        }
    }
}
