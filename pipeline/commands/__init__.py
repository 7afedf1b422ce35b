"""One command per module: each parses, calls a library function, and hands its rows to one output."""
