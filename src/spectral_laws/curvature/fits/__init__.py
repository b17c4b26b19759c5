"""What is fitted to measured spectra."""
