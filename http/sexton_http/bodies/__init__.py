"""What requests and answers are made of: decoding, ids, cursors, shapes, server-sent events."""
