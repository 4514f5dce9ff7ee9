package dev.weft.examples.llm;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;

/** Models of examples/llm/fetch.sh; tests that lack them are skipped. */
final class Models {

    private Models() {}

    private static Path home() {
        Path home = Path.of("").toAbsolutePath();
        while (home != null && !Files.exists(home.resolve("weft"))) {
            home = home.getParent();
        }
        return home.resolve("build/models");
    }

    static Path file(String name) {
        Path file = home().resolve(name);
        assumeTrue(Files.exists(file), () -> "no " + file + ": examples/llm/fetch.sh fetches it");
        return file;
    }

    /** As it is fetched, or as Convert makes it. */
    static Path stories() {
        Path fetched = home().resolve("stories15M.data");
        Path converted = home().resolve("stories15M.gguf");
        return Files.exists(converted) && !Files.exists(fetched)
                ? converted
                : file("stories15M.data");
    }

    static Model stories(String type, Arena arena) throws IOException {
        return Model.load(stories(), type, arena);
    }

    /** The same weights, with a template: what it answers is a story. */
    static Model chatty(Arena arena) throws IOException {
        Model model = stories("fp32", arena);
        Tokenizer tokenizer = model.tokenizer();
        String[] texts = new String[tokenizer.size()];
        float[] scores = new float[texts.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = tokenizer.textInFile(i);
            scores[i] = tokenizer.score(i);
        }
        return new Model(
                model.shape(),
                model.embedding(),
                model.layers(),
                model.norm(),
                model.head(),
                new Tokenizer(
                        java.util.List.of(texts),
                        scores,
                        tokenizer.begin(),
                        tokenizer.end(),
                        "{{ '<|user|>' }}"));
    }
}
