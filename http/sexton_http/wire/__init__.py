"""Serves bytes on connections: sockets, TLS, HTTP/1.1 and HTTP/2."""
