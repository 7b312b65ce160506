"""Result files: everything that a person sees is computed from them."""

from jbench.results.result_file import load_all, load_predictions, read, rescore, verify
from jbench.results.side_folders import attachment_folder, attachments

__all__ = ['attachment_folder', 'attachments', 'load_all', 'load_predictions', 'read', 'rescore', 'verify']
