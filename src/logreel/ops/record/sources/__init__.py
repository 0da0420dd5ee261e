"""Live sources: sockets, serial ports, and middleware."""
