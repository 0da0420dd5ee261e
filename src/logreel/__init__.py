"""logreel."""
