"""Is a rule right? The cases that stand beside the rules, and checks of what they claim."""
