"""Running a training script with rules compiled into it, without an edit, in all the processes that it starts."""
