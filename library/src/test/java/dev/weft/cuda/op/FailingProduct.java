package dev.weft.cuda.op;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.RowPlaces;

/**
 * A product that cannot be launched after the first time.
 *
 * @param launches counts those of all that share it
 */
record FailingProduct(DeviceProduct product, int[] launches) implements DeviceProduct {

    @Override
    public int blocks() {
        return product.blocks();
    }

    @Override
    public void setRows(RowPlaces.Call call, GpuStream stream) {
        product.setRows(call, stream);
    }

    @Override
    public void launch(int place, int epoch, GpuStream stream) {
        if (launches[0]++ > 0) {
            throw new IllegalStateException("this product fails, on purpose");
        }
        product.launch(place, epoch, stream);
    }

    @Override
    public void close() {
        product.close();
    }
}
