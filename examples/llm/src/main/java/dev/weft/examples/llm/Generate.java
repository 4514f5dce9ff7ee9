package dev.weft.examples.llm;

import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.IntConsumer;

/** Continues a text, or answers a question: see README.md. */
public final class Generate {

    private static final int ROWS = 256;

    /** Tokens of a chat, unless the model allows fewer. */
    private static final int LONGEST = 8192;

    private final Options options;
    private final Model model;
    private final Generator generator;

    private Generate(Options options, Model model, Generator generator) {
        this.options = options;
        this.model = model;
        this.generator = generator;
    }

    /**
     * What the command line says.
     *
     * @param chats whether the text is a question to a chat model
     * @param text null for a chat whose questions are read from the console
     */
    private record Options(
            Path model,
            String weights,
            int ranks,
            int tokens,
            double temperature,
            double share,
            long seed,
            boolean chats,
            boolean onGpu,
            String text) {

        private static final String USAGE =
                "usage: Generate MODEL [--weights file|fp32|q8_0|q4_0|q4_k] [--ranks N]"
                        + " [--tokens N] [--temperature T] [--seed N] [--top-p P] [--gpu] [--chat] [TEXT]";

        static Options of(String... args) {
            Path model = null;
            String weights = "file";
            int ranks = 1;
            int tokens = 64;
            double temperature = 0;
            double share = 1;
            long seed = 1;
            boolean chats = false;
            boolean onGpu = false;
            String text = null;
            for (int i = 0; i < args.length; i++) {
                switch (args[i]) {
                    case "--weights" -> weights = value(args, ++i);
                    case "--ranks" -> ranks = (int) number(args, ++i);
                    case "--tokens" -> tokens = (int) number(args, ++i);
                    case "--temperature" -> temperature = number(args, ++i);
                    case "--top-p" -> share = number(args, ++i);
                    case "--seed" -> seed = (long) number(args, ++i);
                    case "--chat" -> chats = true;
                    case "--gpu" -> onGpu = true;
                    default -> {
                        if (args[i].startsWith("--") || text != null) {
                            throw new IllegalArgumentException(
                                    "'%s': %s".formatted(args[i], USAGE));
                        }
                        if (model == null) {
                            model = Path.of(args[i]);
                        } else {
                            text = args[i];
                        }
                    }
                }
            }
            if (model == null || text == null && !chats) {
                throw new IllegalArgumentException(USAGE);
            }
            return new Options(
                    model, weights, ranks, tokens, temperature, share, seed, chats, onGpu, text);
        }

        private static String value(String[] args, int at) {
            if (at == args.length) {
                throw new IllegalArgumentException(
                        "%s without a value: %s".formatted(args[at - 1], USAGE));
            }
            return args[at];
        }

        private static double number(String[] args, int at) {
            String text = value(args, at);
            try {
                return Double.parseDouble(text);
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException(
                        "%s %s: expected a number".formatted(args[at - 1], text), e);
            }
        }

        Sampler sampler() {
            return temperature == 0 ? Sampler.greedy() : Sampler.random(temperature, share, seed);
        }
    }

    /** See README.md. */
    public static void main(String... args) {
        try {
            run(Options.of(args));
        } catch (NoSuchFileException e) {
            System.err.println("llm: there is no file " + e.getFile());
            System.exit(2);
        } catch (IllegalArgumentException | IOException e) {
            System.err.println("llm: " + e.getMessage());
            System.exit(2);
        }
    }

    private static void run(Options options) throws IOException {
        try (Arena arena = Arena.ofShared();
                World world = World.auto(options.ranks())) {
            Model model = Model.load(options.model(), options.weights(), arena);
            Decoder.Capacity capacity = new Decoder.Capacity(ROWS, 1, LONGEST, 0);
            // Only the process of rank 0 reads and prints.
            boolean leads = world.call(Fabric::rank).contains(0);
            Gpu gpu = options.onGpu() ? gpu() : null;
            try (Generator generator = new Generator(model, capacity, gpu)) {
                Generate program = new Generate(options, model, generator);
                CompletableFuture<Void> console =
                        CompletableFuture.runAsync(
                                () -> program.talk(leads),
                                task -> Thread.ofPlatform().daemon().name("console").start(task));
                generator.run(world);
                console.join();
            }
        } catch (CompletionException e) {
            throw e.getCause() instanceof IllegalArgumentException cause ? cause : e;
        }
    }

    private static Gpu gpu() {
        Gpu.unavailable()
                .ifPresent(
                        why -> {
                            throw new IllegalArgumentException("--gpu: " + why);
                        });
        return Gpu.open(0);
    }

    private void talk(boolean leads) {
        try (generator) {
            if (leads) {
                talk();
            }
        }
    }

    private void talk() {
        if (!options.chats()) {
            System.out.print(options.text());
            answer(model.tokenizer().encode(options.text()), false);
            return;
        }
        List<Chat.Message> messages = new ArrayList<>();
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        String question = options.text();
        while (true) {
            if (question == null) {
                System.out.print("> ");
                System.out.flush();
                if (!lines.hasNextLine()) {
                    return;
                }
                question = lines.nextLine();
            }
            messages.add(new Chat.Message("user", question));
            String text = answer(Chat.tokens(model.tokenizer(), messages), true);
            messages.add(new Chat.Message("assistant", text));
            if (options.text() != null) {
                return;
            }
            question = null;
        }
    }

    private String answer(int[] prompt, boolean first) {
        Tokenizer tokenizer = model.tokenizer();
        Tokenizer.Text text = tokenizer.new Text(first);
        long[] firstNs = new long[1];
        long start = System.nanoTime();
        IntConsumer print =
                token -> {
                    firstNs[0] = firstNs[0] == 0 ? System.nanoTime() : firstNs[0];
                    System.out.print(text.next(token));
                    System.out.flush();
                };
        int[] tokens = generator.submit(prompt, options.tokens(), options.sampler(), print).join();
        System.out.println(text.rest());
        if (tokens.length > 1) {
            System.err.println(
                    String.format(
                            Locale.ROOT,
                            "[%d tokens read in %.2f s, %d more at %.1f tokens/s]",
                            prompt.length,
                            (firstNs[0] - start) / 1e9,
                            tokens.length,
                            (tokens.length - 1) * 1e9 / (System.nanoTime() - firstNs[0])));
        }
        return tokenizer.decode(tokens);
    }
}
