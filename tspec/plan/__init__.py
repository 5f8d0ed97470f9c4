"""From rules to a plan that names no framework: what is read where, what is kept, what is exchanged."""
