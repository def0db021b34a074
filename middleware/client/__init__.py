"""The other end of the stream: a client of any AgJSON source."""
