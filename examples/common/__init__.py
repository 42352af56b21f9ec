"""What the case studies share: reading a configuration, the moving average of weights, the noise schedule."""
