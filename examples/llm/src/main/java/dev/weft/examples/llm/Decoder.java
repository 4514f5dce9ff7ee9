package dev.weft.examples.llm;

import dev.weft.cuda.Gpu;
import dev.weft.examples.llm.Attention.Row;
import dev.weft.fabric.Fabric;
import dev.weft.trace.CallLog;

/** One rank of a decoder, on CPUs or on a GPU. Used by one thread at a time. */
public sealed interface Decoder extends AutoCloseable permits HostDecoder, GpuDecoder {

    /**
     * What a decoder is prepared for.
     *
     * @param rows the most tokens of a call
     * @param chats how many are kept at the same time
     * @param longest tokens of a chat
     * @param threads of a rank; 0 for the cores that it has
     */
    public record Capacity(int rows, int chats, int longest, int threads) {}

    /** One on CPUs. Collective. */
    static Decoder of(Fabric fabric, Model model, Capacity capacity) {
        return new HostDecoder(fabric, model, capacity);
    }

    /** One on a GPU, which ranks may share. Collective. */
    static Decoder of(Fabric fabric, Model model, Capacity capacity, Gpu gpu) {
        return gpu == null
                ? of(fabric, model, capacity)
                : new GpuDecoder(fabric, model, capacity, gpu);
    }

    /** The most tokens of a chat. */
    int longest();

    /**
     * Takes the next tokens of some chats; a chat's tokens are in their order. Collective: all
     * ranks give the same.
     *
     * @param log where each rank logs what it does; null for nowhere
     * @param ids the token of each row
     * @param rows the chat of each row, and its place there
     * @param wanted the rows whose logits are wanted, in ascending order
     * @return the logits of each, the same on all ranks
     */
    float[][] call(CallLog log, int[] ids, Row[] rows, int... wanted);

    /** Likewise without a log. */
    default float[][] call(int[] ids, Row[] rows, int... wanted) {
        return call(null, ids, rows, wanted);
    }

    @Override
    void close();
}
