"""jbench: how well a model decodes brain recordings, in JAX."""

__version__ = '0.1.0'
