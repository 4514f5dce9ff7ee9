package dev.weft.json;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The components of a type of record, looked up once. Such a type need not be public. */
public record RecordShape(List<Component> components, Constructor<?> constructor) {

    private static final Map<Class<?>, RecordShape> KNOWN = new ConcurrentHashMap<>();

    private record Plain(@JsonField int value) {}

    /** What a component without annotation has. */
    private static final JsonField PLAIN =
            Plain.class.getRecordComponents()[0].getAnnotation(JsonField.class);

    /** A component; {@code generic} is its type with the types of elements. */
    public record Component(
            String name, Class<?> type, Type generic, Method accessor, JsonField field) {

        private static Component of(RecordComponent component) {
            component.getAccessor().setAccessible(true);
            JsonField field = component.getAnnotation(JsonField.class);
            return new Component(
                    component.getName(),
                    component.getType(),
                    component.getGenericType(),
                    component.getAccessor(),
                    field == null ? PLAIN : field);
        }

        /** Its value in a record. */
        public Object in(Record record) {
            try {
                return accessor.invoke(record);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("cannot read " + name + " of " + record, e);
            }
        }
    }

    public static RecordShape of(Class<?> type) {
        return KNOWN.computeIfAbsent(type, RecordShape::lookUp);
    }

    private static RecordShape lookUp(Class<?> type) {
        RecordComponent[] components = type.getRecordComponents();
        Class<?>[] types =
                Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
        try {
            Constructor<?> constructor = type.getDeclaredConstructor(types);
            constructor.setAccessible(true);
            return new RecordShape(
                    Arrays.stream(components).map(Component::of).toList(), constructor);
        } catch (NoSuchMethodException e) {
            throw new IllegalArgumentException(type + " is no record", e);
        }
    }

    /**
     * A record with these values, in the order of the components.
     *
     * @throws IllegalArgumentException with the record's own message, if it refuses them
     */
    public Object create(List<Object> values) {
        try {
            return constructor.newInstance(values.toArray());
        } catch (InvocationTargetException e) {
            throw new IllegalArgumentException(e.getCause().getMessage(), e);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot make a " + constructor.getName(), e);
        }
    }
}
