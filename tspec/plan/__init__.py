"""From rules to a plan that names no framework: which values are read where, kept and exchanged."""
