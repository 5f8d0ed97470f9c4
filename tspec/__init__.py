"""tspec: rules for training jobs, recorded, drafted, reviewed and run."""

__version__ = "0.1.0"
