package dev.weft.op;

import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Hosts;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;

/** Ranks of one host that take themselves for ranks of several. */
final class OnHosts {

    private OnHosts() {}

    static Transport of(Transport below, Hosts hosts) {
        return (Transport)
                Proxy.newProxyInstance(
                        Transport.class.getClassLoader(),
                        new Class<?>[] {Transport.class},
                        (self, method, arguments) -> {
                            if (method.getName().equals("hosts")) {
                                return hosts;
                            }
                            try {
                                return method.invoke(below, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
    }
}
