"""Would the checks notice if a guard were missing: rules with a weaker guard, each of which has to be refuted."""
