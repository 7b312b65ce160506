"""Result files: everything that a person sees is computed from them."""

from jbench.results.result_file import load_all, load_predictions, read, rescore, verify

__all__ = ['load_all', 'load_predictions', 'read', 'rescore', 'verify']
