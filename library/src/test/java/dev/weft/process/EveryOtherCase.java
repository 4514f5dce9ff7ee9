package dev.weft.process;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Of the cases of a parameterized test, which take long because they start programs, only every
 * other one runs, unless long tests do. Whether it is the first or the second depends on the test's
 * name: so each kind of MPI has about half of the tests.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(EveryOtherCase.Condition.class)
public @interface EveryOtherCase {

    /** Looks at the number of a case. */
    final class Condition implements ExecutionCondition {

        private static final Pattern CASE = Pattern.compile("#(\\d+)]$");

        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            Matcher number = CASE.matcher(context.getUniqueId());
            boolean all = System.getProperty("weft.excludedGroups", "").isEmpty();
            if (all || !number.find()) {
                return ConditionEvaluationResult.enabled("all cases");
            }
            int turn = context.getRequiredTestMethod().getName().hashCode();
            return (turn + Integer.parseInt(number.group(1))) % 2 == 0
                    ? ConditionEvaluationResult.enabled("its turn")
                    : ConditionEvaluationResult.disabled("every other case, without --all");
        }
    }
}
