"""Ground floor: declares the planes and records them. Needs pyarrow alone; torch is an extra."""
