"""The ways to carry out a lease: one file each, named in ``registry``."""
