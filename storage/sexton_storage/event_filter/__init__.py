"""The one language that picks events: in lists, streams, exports and bulk work."""
