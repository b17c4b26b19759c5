"""What stands beside the directional curvatures: Hessian eigenvalues, finite differences."""
