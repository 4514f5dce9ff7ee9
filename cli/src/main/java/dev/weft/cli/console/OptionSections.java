package dev.weft.cli.console;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import picocli.CommandLine.Help;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/**
 * The options of a long help text, under headings.
 *
 * @param headings by the option that each precedes, by any of its names
 */
public record OptionSections(Map<String, String> headings) implements IHelpSectionRenderer {

    /** Shows a command's options under these headings. */
    public static void in(CommandSpec command, Map<String, String> headings) {
        command.usageMessage()
                .sectionMap()
                .put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, new OptionSections(headings));
    }

    @Override
    public String render(Help help) {
        StringBuilder text = new StringBuilder();
        List<OptionSpec> section = new ArrayList<>();
        for (OptionSpec option : help.commandSpec().options()) {
            String heading =
                    option.usageHelp() || option.versionHelp()
                            ? "Help"
                            : Arrays.stream(option.names())
                                    .map(headings::get)
                                    .filter(Objects::nonNull)
                                    .findFirst()
                                    .orElse(null);
            if (heading != null) {
                text.append(rendered(help, section));
                section.clear();
                if (!option.versionHelp()) {
                    text.append(System.lineSeparator()).append(heading).append(':');
                    text.append(System.lineSeparator());
                }
            }
            section.add(option);
        }
        return text.append(rendered(help, section)).toString();
    }

    private static String rendered(Help help, List<OptionSpec> options) {
        Help.Layout layout = help.createDefaultLayout();
        layout.addOptions(options, help.createDefaultParamLabelRenderer());
        return layout.toString();
    }
}
