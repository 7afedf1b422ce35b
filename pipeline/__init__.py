"""The click driver, its stages, the store, bundles and comparison. Sees recorder, ingest and sql."""
