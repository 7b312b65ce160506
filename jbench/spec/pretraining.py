"""What pretrained weights have seen: for each checkpoint its corpora, with their parts, other homes and subjects, and
who says so. `verdict` tells whether a score on a dataset is clean, an overlap, or unknown: what is not known is never
called clean.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.model import SCRATCH


class Corpus(NamedTuple):
    """Recordings that weights were learnt on."""

    name: str
    datasets: tuple[str, ...]  # names of jbench or NeuralBench: itself, what is cut from it, and its other homes
    source: str  # who says so
    sure: bool = True  # False: sources differ, or only suggest it
    subjects: tuple[str, ...] = ()  # of them those that were used; (): any


class History(NamedTuple):
    """All that is known of a checkpoint."""

    corpora: tuple[Corpus, ...]
    whole: bool = True  # False: there are more, which no source here names
    left_out: tuple[str, ...] = ()  # datasets that its authors say they kept out

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of all datasets that it has seen, or may have."""
        return tuple(dict.fromkeys(name for corpus in self.corpora for name in corpus.datasets))


class Verdict(NamedTuple):
    """Whether a model has seen the data that it is tested on."""

    status: str  # 'clean' | 'overlap' | 'unknown'
    why: str


FRESH = ('classic', 'baselines')  # families of models that learn from the training part alone
TUH = ('Lopez2017Tuab', 'Hamid2020Tuar', 'Harati2015Tuev', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl')
NEURALBENCH = "NeuralBench's list of overlaps"
SIENA = ('Detti2020Eeg',)
SCHALK = ('Schalk2004Bci2000', 'Schalk2004Bci', 'PhysionetMI')  # NeuralBench's list lacks the end of the name
LEE = ('Lee2019EegMi', 'Lee2019EegErp', 'Lee2019EegSsvep')  # the same people, in the same sessions
HBN = ('Shirazi2024Hbn', 'Shirazi2024HbnL100', 'Shirazi2024HbnL100Mini')
ERP_CORE = tuple(f'Kappenman2021Erp{name}' for name in ('Ern', 'Lrp', 'Mmn', 'N170', 'N2pc', 'N400', 'P3'))
SHIN = ('Shin2017OpenA', 'Shin2017OpenB')
CASTILLOS = tuple(f'CabreraCastillos2023Burst{name}' for name in ('Cvep100', 'Cvep40', 'Vep100', 'Vep40'))
MAMEM = tuple(f'Oikonomou2016Comparative{name}' for name in 'ABC')  # as physionet.org/content/mssvepdb says
SAME = (SCHALK, LEE, ERP_CORE, SHIN, CASTILLOS, MAMEM, HBN)  # datasets of the same people, whoever is in one
ALIKE = (TUH, *SAME)  # datasets that have people in common; which ones are in several of TUH is said nowhere here
UNNAMED = 'what earlier weights have seen'  # in the place of a dataset: weights began from others, which said nothing
CARD = 'docs/jbench_tiny.md'
LABRAM = 'Jiang et al. (2024), appendix D, as other papers and NeuralBench quote it'
TUEG = 'Temple University Hospital EEG Corpus'


def _tueg(source: str, without: Collection[str] = ()) -> Corpus:
    return Corpus(TUEG, tuple(name for name in TUH if name not in without), source)


HISTORIES = {
    'bendr': History((_tueg('Kostas et al. (2021); ' + NEURALBENCH),)),
    'biot': History(
        (
            Corpus('CHB-MIT', ('Dan2023Bids',), 'Yang et al. (2023); ' + NEURALBENCH),
            Corpus('TUAB', ('Lopez2017Tuab',), 'Yang et al. (2023); ' + NEURALBENCH),
            Corpus('TUEV', ('Harati2015Tuev',), 'Yang et al. (2023); ' + NEURALBENCH),
            Corpus('PREST, SHHS, IIIC Seizure', (), 'Yang et al. (2023)'),
        )
    ),
    'labram': History(  # 2535 hours of 16 datasets, the SEED series being one
        (
            Corpus('EEG Motor Movement/Imagery', SCHALK, f'{LABRAM}; {NEURALBENCH}'),
            Corpus('TUAR', ('Hamid2020Tuar',), f'{LABRAM}; {NEURALBENCH}'),
            Corpus('TUEP', ('Veloso2017Tuep',), f'{LABRAM}; {NEURALBENCH}'),
            Corpus('TUSZ', ('Shah2018Tusz',), f'{LABRAM}; {NEURALBENCH}'),
            Corpus('TUSL', ('VonWeltin2017Tusl',), f'{LABRAM}; {NEURALBENCH}'),
            Corpus('Siena Scalp EEG', SIENA, f'{LABRAM}; {NEURALBENCH}'),
            Corpus(
                'Target Versus Non-Target',
                ('Korczowski2019BrainBi2015A',),
                f'{LABRAM}: Korczowski et al. (2019), with 50 people and 32 electrodes, which this one of them had',
            ),
            Corpus('BCI Competition IV-1, Emobrain, Grasp and Lift, Inria BCI Challenge', (), LABRAM),
            Corpus('Raw EEG Data, Resting State EEG Data, SPIS Resting State', (), LABRAM),
            Corpus('SEED, SEED-IV, SEED-GER, SEED-FRA', (), LABRAM),
            Corpus(
                'recordings of its authors',
                ('Liu2024Eeg2video',),
                f'{LABRAM}: 342 hours of the laboratory that SEED-DV is from; which is not said',
                sure=False,
            ),
        ),
        left_out=('Lopez2017Tuab', 'Harati2015Tuev'),  # and SEED-V and MoBI
    ),
    'cbramod': History((_tueg('Wang et al. (2025); ' + NEURALBENCH),)),
    'luna': History(
        (
            _tueg(
                NEURALBENCH + '; its authors left out TUAB, TUAR and TUSL',
                ('Lopez2017Tuab', 'Hamid2020Tuar', 'VonWeltin2017Tusl'),
            ),
            Corpus('Siena Scalp EEG', SIENA, NEURALBENCH),
        ),
        left_out=('Lopez2017Tuab', 'Hamid2020Tuar', 'VonWeltin2017Tusl'),
    ),
    'reve': History(
        (
            Corpus(
                'public EEG datasets',
                (
                    *('Hamid2020Tuar', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl', *SIENA),
                    *('Shirazi2024Hbn', 'Barachant2012Robust', 'Cho2017Supporting', 'Faller2012Autocalibration'),
                    *('Kalunga2016Online', 'Korczowski2019BrainBi2014A', 'Korczowski2019BrainBi2014B'),
                    *('Korczowski2019BrainBi2015A', 'Korczowski2019BrainBi2015B', *LEE, 'Liu2024Eeg'),
                    *('Nakanishi2015Comparison', 'Ofner2017Upper', 'Ofner2017UpperExecution', 'Schirrmeister2017Deep'),
                    *(*SHIN, 'Sosulski2019Electroencephalogram', 'Zhou2016Fully'),
                    *('Hoffmann2008Efficient', 'Arico2014Influence', 'Khan2022Nmt', 'VanDijk2022Two'),
                    *('Gifford2022Large', 'Accou2024Sparrkulee'),
                ),
                NEURALBENCH,
            ),
            Corpus(
                'public EEG datasets',
                ('Lopez2017Tuab', 'Harati2015Tuev', *SCHALK),
                'named by the prose of NeuralBench, not by its list',
                sure=False,
            ),
        ),
        whole=False,  # 92 datasets
    ),
    'signal_jepa': History((Corpus('Lee2019', LEE, 'Guetschel et al. (2024); not checked against the files'),)),
    'steegformer': History(
        (
            Corpus('BCI Competition IV 2a', ('Tangermann2012Review',), "the authors' code, training and test"),
            Corpus('BCI Competition IV 2b', ('Leeb2007Brain',), "the authors' code, training and test"),
            Corpus('High-Gamma Dataset', ('Schirrmeister2017Deep',), "the authors' code"),
            Corpus('a set of motor imagery', ('Cho2017Supporting',), "a name in the authors' code", sure=False),
            Corpus('a set of SSVEP', ('Wang2017Benchmark',), "a name in the authors' code", sure=False),
        ),
        whole=False,  # six private sets, and names that tell too little
    ),
    'eegpt': History(
        (
            Corpus('EEG Motor Movement/Imagery', SCHALK, 'Wang et al. (2024)'),
            Corpus('TSU SSVEP benchmark', ('Wang2017Benchmark',), 'Wang et al. (2024)'),
            Corpus('High-Gamma Dataset', ('Schirrmeister2017Deep',), 'not checked', sure=False),
            Corpus(
                'SEED', ('Liu2024Eeg2video',), 'Wang et al. (2024); whether SEED-DV is among it is not said', sure=False
            ),
            Corpus('M3CV', (), 'Wang et al. (2024)'),
        )
    ),
    'eegdino': History((_tueg('its card'),)),
    'codebrain': History((_tueg('its paper'),)),
    'jbench_tiny': History(
        (
            Corpus('EEG Motor Movement/Imagery', SCHALK, CARD),
            Corpus('EEG During Mental Arithmetic Tasks', ('Zyma2019Electroencephalograms',), CARD),
            Corpus('simulated film', ('SimulatedFilm',), CARD),
        )
    ),
}


def history(model: str) -> History | None:
    """What the published weights of a model have seen; sizes and variants of a model share it. None: no weights."""
    names = (name for name in HISTORIES if model in CHECKPOINTS and f'{model}_'.startswith(f'{name}_'))
    return HISTORIES.get(max(names, key=len, default=''))


def verdict(
    model: str,
    family: str,
    dataset: Collection[str],
    *,
    subjects: Collection[str] = (),
    declared: Collection[str] = (),
) -> Verdict:
    """Whether a model has seen the data that it is tested on.

    Args:
        model: its name with options, as tables have it ('labram', 'labram:weights=none').
        family: its group, as --model has it.
        dataset: its name and aliases.
        subjects: that are tested; (): not known.
        declared: datasets that a result says the weights were learnt on; of a model that jbench does not know, and of
            weights of one's own.
    """
    name, *options = model.split(':')
    weights = next((o.partition('=')[2] for o in options if o.startswith('weights=')), '')
    seen = history(name)
    names = {n.lower() for n in dataset}
    own = weights not in ('', SCRATCH)
    if declared and (seen is None or own):
        if names & alike(declared):
            return Verdict('overlap', 'as its result declares')
        if UNNAMED not in declared and (seen is None or seen.whole):
            return Verdict('clean', 'as its result declares')
    if (family in FRESH and not own) if seen is None else weights == SCRATCH:
        return Verdict('clean', 'it learns from the training part alone')
    if own or seen is None:
        return Verdict('unknown', 'nothing is known of what its weights have seen')
    met = [c for c in seen.corpora if names & {d.lower() for d in c.datasets}]
    met = [c for c in met if not (c.subjects and subjects) or {*c.subjects} & {*subjects}]
    for corpus in sorted(met, key=lambda c: not c.sure):
        status = 'overlap' if corpus.sure else 'unknown'
        return Verdict(status, f'{corpus.name} was in its pretraining ({corpus.source})')
    near = [c for c in seen.corpora if names & alike(c.datasets) - {d.lower() for d in c.datasets}]
    for corpus in sorted(near, key=lambda c: not c.sure):
        same = corpus.sure and names & alike(corpus.datasets, SAME)
        people = 'the people of' if same else 'perhaps people of'
        why = f'{corpus.name}, with {people} this dataset, was in its pretraining ({corpus.source})'
        return Verdict('overlap' if same else 'unknown', why)
    if names & {d.lower() for d in seen.left_out}:
        return Verdict('clean', 'its authors kept it out of its pretraining')
    if not seen.whole:
        return Verdict('unknown', 'not all that its weights have seen is named here')
    return Verdict('clean', 'it is in none of the corpora that its authors name')


def of_companion(name: str) -> str:
    """The warning of a result whose encoder learnt another task, too, from people that it is tested on."""
    return f'overlap: {name} learnt from people of this test'


def seen_beside(warnings: Collection[str], companions: Collection[tuple[str, str]]) -> bool:
    """Whether a result says that its encoder learnt people of its test in a task beside it (`recipe.together`)."""
    return not {of_companion(name) for name, _ in companions}.isdisjoint(warnings)


def alike(declared: Collection[str], among: Collection[Collection[str]] = ALIKE) -> set[str]:
    """Names in small letters, with those of datasets that have people in common with them."""
    told = {d.lower() for d in declared}
    groups = ({d.lower() for d in group} for group in among)
    return told.union(*(group for group in groups if group & told))
