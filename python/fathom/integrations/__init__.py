"""Callbacks for frameworks: they record the first steps on the GPU that is there, and write report and page."""
