"""HTTP on this machine: access control and the listening server, shared by ``serve`` and ``view``."""
