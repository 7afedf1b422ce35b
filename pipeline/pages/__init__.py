"""Pages of a browser: one offline HTML file for a run, and one for a campaign (docs/report.md)."""
