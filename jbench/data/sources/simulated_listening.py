"""Simulated stand-in for a story in MEG. Departures from LibriBrain: one person hears three minutes in each of six
sessions (real: 86 sessions of some half an hour); 24 of Neuromag's 102 places, 128 Hz; eight phonemes of 39."""

from __future__ import annotations

from jbench.data.sources import simulated
from jbench.data.sources.simulated import read, recordings
from jbench.spec.dataset import Dataset

__all__ = ['DATASETS', 'read', 'recordings']

DATASETS = (
    Dataset(
        name='SimulatedMegListening',
        title='Simulation of a story that one person hears in MEG, in the layout of Ozdogan2025Libribrain',
        source=__name__,
        device='meg',
        n_subjects=1,
        n_recordings=6,
        n_chans=72,
        sfreq=(128.0,),
        event_types=('Moment', 'Phoneme'),
        amplitude=(1e-14, 1e-10),
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {simulated.VERSION}, population seed {simulated.SEED}',
        access='embedded',
        simulated=True,
        recipe=(('signal.sfreq', 128.0), ('signal.band', None), *simulated.RECIPE),
    ),
)
