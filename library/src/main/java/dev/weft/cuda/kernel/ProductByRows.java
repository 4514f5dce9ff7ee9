package dev.weft.cuda.kernel;

import dev.weft.cuda.GpuStream;
import java.util.List;
import java.util.Optional;

/**
 * One product by several kernels, each for as many rows as its tiles have: a launch takes the one
 * that suits the rows of its call. One thread at a time.
 */
public final class ProductByRows implements DeviceProduct {

    private final List<Choice> choices;
    private final long allRows;
    private DeviceProduct used;

    /**
     * @param rows that the product can have at most
     */
    public record Choice(long rows, DeviceProduct product) {}

    /**
     * Takes ownership of the products.
     *
     * @param choices from most rows to fewest; the first is for all
     * @param allRows of calls that lack none
     */
    public ProductByRows(List<Choice> choices, long allRows) {
        this.choices = List.copyOf(choices);
        this.allRows = allRows;
        this.used = whole();
    }

    private DeviceProduct whole() {
        return choices.getFirst().product();
    }

    @Override
    public int blocks() {
        return whole().blocks();
    }

    @Override
    public void setRows(RowPlaces.Call call, GpuStream stream) {
        long count = call.at(allRows);
        for (Choice choice : choices) {
            used = count <= choice.rows() ? choice.product() : used;
        }
        used.setRows(used == whole() ? call : row -> Math.min(row, count), stream);
    }

    @Override
    public void launch(int place, int epoch, GpuStream stream) {
        used.launch(place, epoch, stream);
    }

    /** Asked of calls of all rows alone. */
    @Override
    public Optional<TileTimes> times() {
        return whole().times();
    }

    @Override
    public void watch(ArrivalTimes arrivals) {
        whole().watch(arrivals);
    }

    @Override
    public void close() {
        choices.forEach(choice -> choice.product().close());
    }
}
