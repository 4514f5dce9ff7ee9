package dev.weft.examples.llm;

import java.util.ArrayList;
import java.util.List;

/** How the messages of a chat become tokens: the templates of Zephyr and of Llama 2. */
public final class Chat {

    private Chat() {}

    /**
     * A message.
     *
     * @param role {@code system}, {@code user} or {@code assistant}
     */
    public record Message(String role, String text) {}

    /**
     * The tokens after which the model answers. The template in the model's file decides how; it is
     * not run, only recognized.
     *
     * @throws IllegalArgumentException if it is another one, or there is none
     */
    public static int[] tokens(Tokenizer tokenizer, List<Message> messages) {
        List<Integer> to = new ArrayList<>();
        to.add(tokenizer.begin());
        String template = tokenizer.template();
        if (template.contains("<|user|>")) {
            for (Message message : messages) {
                tokenizer.append(" <|" + message.role() + "|>\n" + message.text(), to);
                to.add(tokenizer.end());
                tokenizer.append("\n", to);
            }
            tokenizer.append("<|assistant|>\n", to);
        } else if (template.contains("[INST]")) {
            String system = "";
            for (Message message : messages) {
                switch (message.role()) {
                    case "system" -> system = "<<SYS>>\n" + message.text() + "\n<</SYS>>\n\n";
                    case "user" -> {
                        tokenizer.append(" [INST] " + system + message.text() + " [/INST]", to);
                        system = "";
                    }
                    default -> {
                        tokenizer.append(" " + message.text() + " ", to);
                        to.add(tokenizer.end());
                        to.add(tokenizer.begin());
                    }
                }
            }
        } else {
            throw new IllegalArgumentException(
                    template.isEmpty()
                            ? "the model has no chat template: it continues texts, but does not chat"
                            : "the model's chat template is not known: expected <|user|> or [INST]");
        }
        return to.stream().mapToInt(Integer::intValue).toArray();
    }
}
