"""From a plan to code that runs in a job: one adapter for each framework, and templates."""
