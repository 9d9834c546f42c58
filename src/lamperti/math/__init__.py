"""Linear algebra, Gaussians, Normal-Gamma and resampling: nothing here knows of series or models."""
