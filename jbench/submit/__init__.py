"""Archives for the EEG challenges: a trained network as plain torch, tried before it is written."""
