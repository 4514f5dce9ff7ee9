package dev.weft.cli.console;

import java.util.ArrayList;
import java.util.List;

/** Rows of cells in columns as wide as their widest cell, numbers to the right. */
public final class TextTable {

    private final List<List<String>> rows = new ArrayList<>();

    public TextTable(String... head) {
        rows.add(List.of(head));
    }

    /** A table; bars separate the words of the head. */
    public static TextTable of(String head) {
        return new TextTable(head.split("\\|", -1));
    }

    /** Adds a row with one cell for each column. */
    public void row(String... cells) {
        rows.add(List.of(cells));
    }

    /** Head and rows, as lines without trailing blanks. */
    public List<String> lines() {
        List<StringBuilder> lines = new ArrayList<>();
        rows.forEach(row -> lines.add(new StringBuilder()));
        for (int column = 0; column < rows.getFirst().size(); column++) {
            append(lines, column);
        }
        return lines.stream().map(line -> line.toString().stripTrailing()).toList();
    }

    private void append(List<StringBuilder> lines, int column) {
        int width = 0;
        boolean numbers = rows.size() > 1;
        for (int i = 0; i < rows.size(); i++) {
            String cell = rows.get(i).get(column);
            width = Math.max(width, cell.length());
            numbers &= i == 0 || isNumber(cell);
        }
        for (int i = 0; i < rows.size(); i++) {
            String cell = rows.get(i).get(column);
            String blanks = " ".repeat(width - cell.length());
            String gap = column == 0 ? "" : "  ";
            lines.get(i).append(gap).append(numbers ? blanks + cell : cell + blanks);
        }
    }

    /** A dash stands for a missing number. */
    private static boolean isNumber(String cell) {
        return cell.equals("-") || !cell.isEmpty() && Character.isDigit(cell.charAt(0));
    }
}
