package dev.weft.examples.encoder;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** What a process needs of all-MiniLM-L6-v2, whatever its ranks are. */
public record Model(Weights weights, WordPiece tokenizer) {

    /**
     * Reads both at the same time. Do so before a world is joined: its other ranks would wait.
     *
     * @param arena for the weights
     */
    public static Model load(Arena arena) throws IOException {
        CompletableFuture<WordPiece> tokenizer =
                CompletableFuture.supplyAsync(Model::readTokenizer);
        Weights weights = Weights.load(arena);
        try {
            return new Model(weights, tokenizer.join());
        } catch (CompletionException e) {
            throw new IOException("cannot read the tokenizer: " + e.getMessage(), e);
        }
    }

    private static WordPiece readTokenizer() {
        try {
            return Weights.tokenizer();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
