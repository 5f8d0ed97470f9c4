"""`python -m tspec`, the form that torchrun needs: `torchrun … -m tspec record …`."""

from tspec.cli import main

if __name__ == "__main__":
    main()
