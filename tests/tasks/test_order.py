"""The order of recordings, by which groups are dealt into the parts of a split.

The published code deals groups in the order in which their recordings come: that of its reader, unless a later step
sorts them by name. For each set the table says what its order is taken from, with files whose other orders differ.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jbench.data.discover import find_recordings
from jbench.data.load import splits
from jbench.data.sources import diagnoses, hbn, moabb
from jbench.plan import cells, select
from jbench.spec.task import ByGroup
from jbench.tasks import REVISION

SLEEP_EDF_TEST = '02 08 14 24 35 37 42 50 52 55 57 66 70 71 73 80'.split()  # the published code on the same 153 names
SLEEP_EDF_VALID = '13 17 18 21 22 36 43 44 58 59 60 61 63 64 67 75'.split()


MOABB = 'jbench.data.sources.moabb'
HBN = [f'cmi_bids_R{k}/sub-{s}/eeg/sub-{s}_task-RestingState_eeg.set' for k, s in ((1, 'B'), (2, 'A'), (10, 'C'))]
TUAB = [f'edf/{p}_001_t000.edf' for p in ('eval/abnormal/01/c', 'eval/normal/01/b', 'train/abnormal/01/a')]
SENTENCES = 'task1-SR/Rawdata/{0}/{0}_SR{1}_EEG.mat'
FILM = 'SEED-DV/EEG/{}.npy'
PICTURES = 'sub-{0}/ses-{1}/func/sub-{0}_ses-{1}_task-{2}_run-{3}_{4}'
ORDER = {  # dataset: what its order is taken from; files in that order; recordings in that order
    'Shirazi2024Hbn': ('number of the release, then name of the person', HBN, 'B A C'),
    'Hamid2020Tuar': ('name of the file', ['edf/01_tcp_ar/b_s1_t0.edf', 'edf/02_tcp_le/a_s1_t0.edf'], 'b a'),
    'Harati2015Tuev': ('part, then name', ['edf/eval/b/bckg_b_a_.edf', 'edf/train/a/a_0.edf'], 'b a'),
    'Lopez2017Tuab': ('part, label, then name of the file', TUAB, 'c b a'),
    'Hinss2023Open': (
        'person, task as published, session',
        [f'sub-{s}/sub-{s}/ses-S{k}/eeg/{t}.set' for s in ('01', '10') for t in ('PVT', 'MATBeasy') for k in (1, 2)],
        ' '.join(f'sub-{s}/{t}' for s in ('01', '10') for t in ('PVT', 'PVT', 'MATBeasy', 'MATBeasy')),
    ),
    'Kueper2024Eeg': (
        'person, then number of the run, additional ones last',
        [
            'AA/x/20_AA56D_orthosisErrorIjcai_multi_set2.vhdr',
            'AA/x/20_AA56D_orthosisErrorIjcai_multi_set10.vhdr',
            'AA/additional sets/20_AA56D_orthosisErrorIjcai_multi_set9.vhdr',
            'BS/x/20_BS34D_orthosisErrorIjcai_multi_set1.vhdr',
        ],
        'AA56D/2 AA56D/10 AA56D/9 BS34D/1',
    ),
    'Albrecht2019Increased': (
        'patients first, then the number, as Python iterates over a set of such numbers: from 128 on first',
        [f'data/CC_EEG_s{k}_{g}.mat' for k, g in ((128, 'P'), (148, 'P'), (101, 'P'), (127, 'P'), (149, 'N'))],
        'P128 P148 P101 P127 N149',
    ),
    'Singh2021Timing': (
        'healthy people first, then the number',
        [f'data/{name}.vhdr' for name in ('Control1025', 'Control1415', 'PD1005', 'PD2445')],
        'Control1025 Control1415 PD1005 PD2445',
    ),
    'Mumtaz2018Machine': (
        'healthy people first, then the number',
        ['H S2 EC.edf', 'H S10 EC.edf', 'MDD S1 EC.edf', 'MDD S11 EC.edf'],
        'H2 H10 MDD1 MDD11',
    ),
    'Miltiadous2023Dice': (
        'number, which has three digits',
        [f'sub-{s}/eeg/sub-{s}_task-eyesclosed_eeg.set' for s in ('002', '010')],
        '002 010',
    ),
    'Sivakumar2024Emg2qwerty': (
        'name of the person, then of the session',
        [f'sub-{s}/ses-1/emg/sub-{s}_ses-1_task-typing_emg.bdf' for s in ('10', '9')],
        '10 9',
    ),
    'Chen2023Large': (
        'number, which has three digits',
        [f'Data/sub{k}/data.bdf' for k in ('002', '010')],
        'sub002 sub010',
    ),
    'Liu2024Eeg2video': (
        'number of the person, first session first',
        [FILM.format(n) for n in ('sub1', 'sub1_session2', 'sub2', 'sub10')],
        ' '.join(f'{s}/{k}' for s in ('sub1', 'sub1', 'sub2', 'sub10') for k in range(7)),
    ),
    'Gifford2022Large': (
        'number of the person, session, training part first',
        [f'sub-{s}/ses-01/raw_eeg_{p}.npy' for s in ('02', '10') for p in ('training', 'test')],
        '2/training 2/test 10/training 10/test',
    ),
    'Grootswagers2022Human': (
        'number, which has two digits',
        [f'sub-{s}/eeg/sub-{s}_task-rsvp_eeg.vhdr' for s in ('02', '10')],
        '02 10',
    ),
    'Xu2024Alljoined': (
        'number of the person, then of the session',
        [f'raw/subj0{s}_session{k}_eeg.fif' for s in (1, 2) for k in (1, 2)],
        '1 1 2 2',
    ),
    'Xu2025Alljoined': (
        'numbers of person, session and block, which have two digits',
        [
            f'raw_eeg/sub-{s:02d}/session_01/block_{k:02d}/Subject {s}, Session 1, Block {k}.edf'
            for s in (2, 10)
            for k in (2, 10)
        ],
        '2/2 2/10 10/2 10/10',
    ),
    'Hebart2023ThingsMeg': (
        'numbers of person, session and run',
        [
            f'sub-BIGMEG{s}/ses-{k}/meg/sub-BIGMEG{s}_ses-{k}_task-main_run-01_meg.ds'
            for s in '12'
            for k in ('02', '10')
        ],
        'BIGMEG1 BIGMEG1 BIGMEG2 BIGMEG2',
    ),
    'Levy2026NoninvasiveEeg': (
        'name of the file',
        [f'EEG/EEG/{s}_DECOMEG_S1_1_task{k}.vhdr' for s in ('002', '010') for k in (1, 2)],
        '002/task1 002/task2 010/task1 010/task2',
    ),
    'Levy2026NoninvasiveMeg': (
        'name of the folder of the person: 10 before 7_ and after 07_',
        [f'MEG/FIF/{s}/230101/block1.fif' for s in ('07_1', '10_2', '8_3')],
        'S7 S10 S8',
    ),
    'Schalk2004Bci2000': (
        'numbers of person and run, which have three and two digits',
        [f'S{s}/S{s}R{k}.edf' for s in ('009', '010') for k in ('04', '10')],
        'S009/R04 S009/R10 S010/R04 S010/R10',
    ),
    'Zyma2019Electroencephalograms': (
        'number of the person, rest first',
        [f'Subject{s}_{k}.edf' for s in ('09', '10') for k in (1, 2)],
        'Subject09/1 Subject09/2 Subject10/1 Subject10/2',
    ),
    'Dan2023Bids': (
        'numbers of person, session and run, which have two digits',
        [
            f'BIDS_CHB-MIT/sub-{s}/ses-{k}/eeg/sub-{s}_ses-{k}_task-szMonitoring_run-00_eeg.edf'
            for s in ('02', '10')
            for k in ('01', '02')
        ],
        '02 02 10 10',
    ),
    'Hollenstein2018Zuco': (
        'task, name of the person, name of the block',
        [SENTENCES.format(s, k) for s in ('ZAB', 'ZDM') for k in (1, 2)],
        'ZAB/SR1 ZAB/SR2 ZDM/SR1 ZDM/SR2',
    ),
    'Kemp2000Analysis': (
        'number of the person, then the night; sleep_stage: first the letters of the file of stages',
        ['SC4021E0-PSG.edf', 'SC4101E0-PSG.edf', 'SC4102E0-PSG.edf'],
        '02 10 10',
    ),
    'Alvarez2022Haaglanden': ('number, which has three digits', ['SN002.edf', 'SN010.edf'], 'SN002 SN010'),
    'Ghassemi2018You': (
        'name of the record',
        [f'training/{r}/{r}.hea' for r in ('tr03-0005', 'tr12-0001')],
        'tr03-0005 tr12-0001',
    ),
    'Brennan2019Hierarchical': ('number, which has two digits', ['S03.vhdr', 'S10.vhdr'], 'S03 S10'),
    'Kalunga2016Online': (
        'number of the person, which has two digits',
        [f'subject{s}/record_raw.fif' for s in ('02', '10')],
        '02 10',
    ),
    'Nieuwland2018Large': (
        'site, then number; word@1: the text of the name of the person',
        [f'Raw and Processed data/Raw data/EDIN/EDIN{k}.bdf' for k in (2, 10)],
        'EDIN_2 EDIN_10',
    ),
    'Mne2013SampleEeg': (
        'there is one recording',
        ['MNE-sample-data/MEG/sample/sample_audvis_filt-0-40_raw.fif'],
        'sample',
    ),
    **{
        name: (
            'numbers of person, session and run, which have two digits',
            [PICTURES.format(s, k, task, r, 'events.tsv') for s, k, r in runs],
            ' '.join(f'{s}/{r}' for s, _, r in runs),
        )
        for name, task, runs in (
            ('Allen2022MassiveRaw', 'nsdcore', [('01', 'nsd02', '02'), ('01', 'nsd10', '01'), ('02', 'nsd01', '10')]),
            ('Chang2019Bold5000', '5000scenes', [('CSI1', '02', '02'), ('CSI1', '10', '01'), ('CSI2', '01', '10')]),
            (
                'Hebart2023ThingsBold',
                'things',
                [('01', 'things02', '02'), ('01', 'things10', '01'), ('02', 'things01', '10')],
            ),
        )
    },
}
BESIDE = {  # files that a recording also needs, of the first file's name or folder
    'Kemp2000Analysis': lambda p: [p.with_name(f'{p.name[:7]}C-Hypnogram.edf')],
    'Alvarez2022Haaglanden': lambda p: [p.with_name(f'{p.stem}_sleepscoring.edf')],
    'Ghassemi2018You': lambda p: [p.with_suffix('.arousal')],
    'Brennan2019Hierarchical': lambda p: [p.parent / 'timelock-preprocessing' / f'{p.stem}.mat'],
    'Xu2024Alljoined': lambda p: [p.parent.parent / '05_125' / f'{p.name[:15]}.h5'],
    'Levy2026NoninvasiveEeg': lambda p: [
        p.parents[1] / 'logs' / f'S{int(p.name[:3])}_session1_block{p.stem[-1]}_list1.mat'
    ],
    'Levy2026NoninvasiveMeg': lambda p: [
        p.parents[3] / 'logs' / f'S{int(p.parts[-3].partition("_")[0])}-session1_block1_list1.mat'
    ],
    'Hollenstein2018Zuco': lambda p: [p.parents[2] / 'Matlabfiles' / f'results{p.parent.name}_SR.mat'],
    'Allen2022MassiveRaw': lambda p: derived(p, '_space-fsaverage_hemi-L_bold.func.gii', p.parents[4] / 'derivatives'),
    'Chang2019Bold5000': lambda p: derived(
        p, '_space-MNI152NLin2009aSym_desc-preproc_bold.nii.gz', p.parents[3] / 'derivatives'
    ),
    'Hebart2023ThingsBold': lambda p: derived(
        p, '_space-MNI152NLin2009aSym_desc-preproc_bold.nii.gz', p.parents[3] / 'derivatives'
    ),
}


def derived(table: Path, suffix: str, folder: Path) -> list[Path]:
    """The prepared run of a table of events."""
    return [folder / table.name.replace('_events.tsv', suffix)]


def nights() -> list[str]:
    """The names of the 306 files of Sleep-EDF's cassette, as MNE lists them."""
    import mne.datasets.sleep_physionet as listed

    lines = Path(listed.__file__).with_name('SHA1SUMS').read_text().splitlines()
    return [name for name in (line.split()[1] for line in lines) if name.startswith('SC4')]


def touch(root: Path, names: list[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_subjects_of_sleep_edf_are_dealt_in_the_published_order(tmp_path) -> None:
    dataset = select.find_dataset('Kemp2000Analysis')
    touch(tmp_path / dataset.name, nights())
    refs = find_recordings(dataset, tmp_path)
    assert len(refs) == dataset.n_recordings == 153
    events = {name: np.array([getattr(r, name) for r in refs]) for name in ('subject', 'session')}
    events |= {'scorer': np.array([dict(r.fields)['scorer'] for r in refs]), 'onset': np.zeros(153)}
    for task in select.tasks()['sleep_stage']:
        part = splits.assign(events, cells.apply(task, dataset, ()).split)
        found = {p: sorted(set(events['subject'][part == p].tolist())) for p in splits.SPLITS}
        assert (found['test'], found['valid'], len(found['train'])) == (SLEEP_EDF_TEST, SLEEP_EDF_VALID, 46)
    onset = cells.apply(select.tasks()['sleep_onset'][0], dataset, ()).split  # no step of it sorts: by number
    assert sorted(set(events['subject'][splits.assign(events, onset) == 'test'].tolist())) != SLEEP_EDF_TEST


def test_groups_are_dealt_in_the_order_of_columns() -> None:
    events = {'onset': np.zeros(40), 'subject': np.array([f's{k:02d}' for k in range(40)])}
    events['place'] = np.array([f'{(7 * k) % 40:02d}' for k in range(40)])
    rows = np.argsort(events['place'])
    sorted_rows = {name: column[rows] for name, column in events.items()}
    part = splits.assign(events, ByGroup(order=('place',)))
    np.testing.assert_array_equal(part[rows], splits.assign(sorted_rows, ByGroup()))
    assert (part != splits.assign(events, ByGroup())).any()


def test_the_order_of_every_published_set_is_told() -> None:
    published = {d for v in select.tasks().values() if v[0].revision == REVISION for d in v[0].datasets}
    assert set(ORDER) == {d for d in published if select.find_dataset(d).source != MOABB}


@pytest.mark.parametrize('name', sorted(ORDER))
def test_recordings_come_in_the_order_of_the_published_reader(name: str, tmp_path) -> None:
    said, files, wanted = ORDER[name]
    root = tmp_path / name
    raw = 'nsddata_rawdata/' if name == 'Allen2022MassiveRaw' else ''
    touch(root, [f'{raw}{file}' for file in files[::-1]])
    for file in files if name in BESIDE else ():
        touch(root, [str(p.relative_to(root)) for p in BESIDE[name](root / raw / file)])
    for folder, columns in ((root, diagnoses.SAME), *((f, hbn.PEOPLE) for f in root.glob('cmi_bids_R*'))):
        (folder / 'participants.tsv').write_text('\t'.join(('participant_id', *columns)) + '\n')
    refs = find_recordings(select.find_dataset(name), tmp_path)
    found = [f'{r.subject}/{r.run}' if '/' in wanted else r.subject for r in refs]
    assert found == wanted.split(), said


def test_recordings_that_moabb_reads_come_in_the_order_of_its_list(tmp_path) -> None:
    """Which is that of its `subject_list`, and of the sessions and runs that it gives."""
    name = next(d.name for d in select.datasets().values() if d.source == MOABB)
    (tmp_path / name).mkdir()
    rows = [('2', '0', '1'), ('10', '1', '0'), ('1', '0', '0')]
    text = '\n'.join(','.join(row) for row in (('subject', 'session', 'run'), *rows))
    (tmp_path / name / moabb.LIST).write_text(text)
    refs = find_recordings(select.find_dataset(name), tmp_path)
    assert [(r.subject, r.session, r.run) for r in refs] == rows
