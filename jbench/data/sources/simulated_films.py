"""Simulated people who see the same film, as those of the Healthy Brain Network do: for pretraining.

The generator is that of the other simulated sets (simulated.py); what the film does is in data/simulation/films.py.
"""

from __future__ import annotations

from jbench.data.sources import simulated
from jbench.data.sources.simulated import read, recordings
from jbench.spec.dataset import Dataset

__all__ = ['DATASETS', 'read', 'recordings']

DATASETS = (
    Dataset(
        name='SimulatedFilm',
        title='Simulation of people who see a film of four minutes, in the layout of Shirazi2024Hbn, SNR -4.3 dB',
        source=__name__,
        n_subjects=30,
        n_recordings=30,
        n_chans=20,
        sfreq=(128.0,),
        event_types=('Film',),
        n_events=1,
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {simulated.VERSION}, population seed {simulated.SEED}',
        access='embedded',
        simulated=True,
    ),
)
