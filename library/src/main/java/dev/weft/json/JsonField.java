package dev.weft.json;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Says about a component of a record what its type does not, for {@link RecordJson}. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.RECORD_COMPONENT)
public @interface JsonField {

    /** The least of any numbers, also infinite ones and NaN, which JSON has as text. */
    long ANY = Long.MIN_VALUE;

    /** The least number. */
    long least() default 0;

    /** The largest number. */
    long most() default JsonObject.MOST;

    /**
     * Whether it may be null or missing in a file. Then it is null, false, NaN or, if it is whole,
     * the least number.
     */
    boolean optional() default false;

    /** Like {@link #optional}; such a value is left out of the file, and is not null there. */
    boolean omitted() default false;

    /**
     * Whether it follows from other fields: it is written, and when read, as if it were missing.
     */
    boolean derived() default false;

    /**
     * Whether the fields of this record lie among those around it; there are none if it is null.
     */
    boolean flat() default false;

    /** Whether this list must have an element. */
    boolean some() default false;

    /** Whether each element of this list is on a line of its own, however the rest is indented. */
    boolean lines() default false;
}
