"""Foreign traces and recorder captures -> planes. Knows the plane declarations and nothing else of the house."""
