package dev.weft.examples.llm;

/**
 * The sizes of a Llama-like decoder.
 *
 * @param width of a token's row
 * @param hidden columns between the projections of the feed-forward part
 * @param heads of queries
 * @param keyHeads of keys and values; each serves the same number of heads
 * @param longest tokens of a chat at most
 * @param epsilon of norms
 * @param turn of the slowest pair in rotary embeddings: 10000 in most models
 */
public record Shape(
        int width,
        int hidden,
        int layers,
        int heads,
        int keyHeads,
        int vocabulary,
        int longest,
        float epsilon,
        float turn) {

    public Shape {
        boolean fits =
                width > 0
                        && hidden > 0
                        && layers > 0
                        && heads > 0
                        && keyHeads > 0
                        && vocabulary > 0
                        && longest > 0
                        && width % (2L * heads) == 0
                        && heads % keyHeads == 0;
        if (!fits) {
            throw new IllegalArgumentException(
                    ("width %d, hidden %d, layers %d, heads %d, heads of keys %d, vocabulary %d, longest %d:"
                                    + " expected positive numbers, heads of an even width, and as many for each head of keys")
                            .formatted(
                                    width, hidden, layers, heads, keyHeads, vocabulary, longest));
        }
    }

    int headWidth() {
        return width / heads;
    }

    /** Heads of queries that share keys and values. */
    int sharers() {
        return heads / keyHeads;
    }
}
