"""The version of this package; it is that of the daemon it was written for."""

__version__ = "0.1.0"
