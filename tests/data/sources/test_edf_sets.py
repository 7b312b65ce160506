"""Readers of nights and of clinical EEG, on small EDF files in the layout of Sleep-EDF, HMC and TUAB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import edfio
import numpy as np
import pytest

from jbench.data.discover import find_recordings
from jbench.data.formats import sleep_stages
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, event_table
from jbench.data.sources import sleep, tuh
from jbench.data.windows import chosen
from jbench.plan import cells, select
from jbench.spec.task import Trim

KEMP, HMC, TUAB, TUAR = map(select.find_dataset, ('Kemp2000Analysis', 'Alvarez2022Haaglanden', 'TUAB', 'TUAR'))
KEMP_NAMES = 'EEG Fpz-Cz,EEG Pz-Oz,EOG horizontal,Resp oro-nasal,EMG submental,Temp rectal,Event marker'.split(',')
HMC_NAMES = 'EEG F4-M1,EEG C4-M1,EEG O2-M1,EEG C3-M2,EMG chin,EOG E1-M2,EOG E2-M2,ECG'.split(',')
TUAB_NAMES = 'EEG FP1-REF,EEG T3-REF,EEG A1-REF,EEG CZ-LE,EEG 26-REF,EEG EKG1-REF,PHOTIC-REF'.split(',')
Stages = list[tuple[float, float, str]]


def write(path: Path, names: list[str], sfreq: float, seconds: int) -> None:
    """A file of noise of 20 microvolts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    edfio.Edf(
        [
            edfio.EdfSignal(rng.normal(0, 20, int(sfreq * seconds)), sfreq, label=n, physical_dimension='uV')
            for n in names
        ]
    ).write(path)


def write_stages(path: Path, stages: Stages) -> None:
    edfio.Edf([], annotations=[edfio.EdfAnnotation(*stage) for stage in stages]).write(path)


def kemp(root: Path, stages: Stages, night: str = 'SC4001E') -> None:
    write(root / f'{night}0-PSG.edf', KEMP_NAMES, 100, 300)
    write_stages(root / f'{night}C-Hypnogram.edf', [(t, d, f'Sleep stage {s}') for t, d, s in stages])


def read(module, ref) -> Recording:
    got = module.read(ref)
    assert isinstance(got, Recording), got
    return got


NIGHT: Stages = [
    (0, 60, 'W'),
    (60, 30, '1'),
    (90, 60, '2'),
    (150, 30, '3'),
    (180, 60, '4'),
    (240, 30, 'R'),
    (270, 30, '?'),
]


@pytest.mark.parametrize('folder', ['', 'sleep-cassette'])
def test_nights_of_sleep_edf_are_found_by_subject_and_night(tmp_path, folder) -> None:
    root = tmp_path / KEMP.name / folder
    for night in ('SC4111E', 'SC4002E', 'SC4001E'):
        kemp(root, NIGHT, night)
    (root / 'SC4002EC-Hypnogram.edf').unlink()
    refs = find_recordings(KEMP, tmp_path)
    assert [(r.subject, r.session, r.run) for r in refs] == [('00', '1', '0'), ('11', '1', '0')]
    assert all(Path(f).exists() for r in refs for f in r.files)


def test_a_night_of_sleep_edf_has_its_stages_and_channels(tmp_path) -> None:
    kemp(tmp_path / KEMP.name, NIGHT)
    (ref,) = find_recordings(KEMP, tmp_path)
    raw, events = read(sleep, ref)
    assert raw.ch_names == ['Fpz-Cz', 'Pz-Oz', 'horizontal', 'oro-nasal', 'submental', 'rectal']
    assert raw.get_channel_types() == ['eeg', 'eeg', 'eog', 'resp', 'emg', 'temperature']
    assert 15e-6 < raw.get_data('eeg').std() < 25e-6
    staged = events['type'] == 'SleepStage'
    assert list(events['stage'][staged]) == ['W', 'N1', 'N2', 'N3', 'R']  # 3 and 4 are one, and ? is none
    assert list(events['onset'][staged]) == [0, 60, 90, 150, 240]
    assert list(events['duration'][staged]) == [60, 30, 60, 90, 30]
    assert check_recording.check(Recording(raw, events), KEMP, 'x') == []
    table = event_table(Recording(raw, events), ref, KEMP)
    assert list(table['type'][:3]) == ['Eeg', 'SleepOnset', 'SleepStage']
    assert list(table['n2_onset'][:3]) == ['', '90', '']


def test_sleep_onset_is_the_last_twenty_minutes_before_n2() -> None:
    def night(*stages: tuple[float, float, str]) -> dict[str, np.ndarray]:
        return sleep_stages.night(*(np.array(column) for column in zip(*stages, strict=True)))

    late = night((0, 3000, 'W'), (3000, 30, 'N2'), (3030, 30, 'W'), (3060, 30, 'N2'))
    assert list(late['type'][4:]) == ['SleepOnset'] and list(late['stage'][4:]) == ['']
    assert list(late['onset'][4:]) == [1800] and list(late['duration'][4:]) == [1200]
    assert list(late['n2_onset'][4:]) == [3000] and np.isnan(late['n2_onset'][:4]).all()
    early = night((0, 600, 'W'), (600, 30, 'N2'))
    assert list(early['onset'][2:]) == [0] and list(early['duration'][2:]) == [600]
    assert list(night((0, 600, 'W'), (600, 30, 'N1'))['type']) == ['SleepStage'] * 2  # never asleep
    assert list(night((0, 600, 'N2'))['type']) == ['SleepStage']  # asleep from the start


def test_epochs_of_one_stage_are_joined_where_nothing_is_between_them() -> None:
    onset, duration, stage = sleep_stages.merged(
        np.array([0.0, 30, 60, 120, 150]), np.full(5, 30.0), np.array(['W', 'W', 'N1', 'N1', 'N2']), np.zeros(5)
    )
    assert (list(onset), list(duration), list(stage)) == (
        [0, 60, 120, 150],
        [60, 30, 30, 30],
        ['W', 'N1', 'N1', 'N2'],
    )


def test_a_night_of_hmc_is_read_with_its_published_names(tmp_path) -> None:
    root = tmp_path / HMC.name / 'recordings'
    write(root / 'SN001.edf', HMC_NAMES, 256, 120)
    stages = [(0.0, 0.0, 'Lights off@@EEG F4-A1'), *((30.0 * k, 30.0, f'Sleep stage {s}') for k, s in enumerate('WWR'))]
    write_stages(root / 'SN001_sleepscoring.edf', [*stages, (90.0, 30.0, 'Sleep stage N2')])
    (ref,) = find_recordings(HMC, tmp_path)
    assert (ref.subject, ref.session) == ('SN001', '0')
    raw, events = read(sleep, ref)
    assert raw.copy().pick('eeg').ch_names == ['F4', 'C4', 'O2', 'C3', 'EMG', 'ECG']
    assert list(events['stage']) == ['W', 'R', 'N2', ''] and list(events['duration']) == [60, 30, 30, 90]
    assert check_recording.check(Recording(raw, events), HMC, 'x') == []


def test_wake_before_the_lights_went_off_is_an_event_of_its_own(tmp_path) -> None:
    """As the published reader has it: its crop of wake shortens the stretch just before sleep alone."""
    root = tmp_path / HMC.name / 'recordings'
    write(root / 'SN001.edf', HMC_NAMES, 256, 180)
    stages = [(30.0 * k, 30.0, f'Sleep stage {s}') for k, s in enumerate(['W', 'W', 'W', 'N2', 'N2', 'W'])]
    lights = [(42.5, 0.0, 'Lights off@@EEG F4-A1'), (150.0, 0.0, 'Lights on@@EEG F4-A1')]
    write_stages(root / 'SN001_sleepscoring.edf', sorted([*stages, *lights]))
    (ref,) = find_recordings(HMC, tmp_path)
    events = read(sleep, ref).events
    staged = events['type'] == 'SleepStage'
    assert list(events['stage'][staged]) == ['W', 'W', 'N2', 'W']
    assert list(events['onset'][staged]) == [0, 60, 90, 150] and list(events['duration'][staged]) == [60, 30, 60, 30]
    trim = cells.apply(select.tasks()['sleep_stage'][0], HMC, ()).window
    assert list(chosen(events, replace(trim, trim=Trim(longest=0.0, every=False)))['duration'][:2]) == [60, 0]


def test_what_is_no_night_is_refused(tmp_path) -> None:
    kemp(tmp_path / KEMP.name, [(0, 30, 'W'), (30, 30, 'X')])
    (ref,) = find_recordings(KEMP, tmp_path)
    got = sleep.read(ref)
    assert isinstance(got, Finding) and got.found == 'Sleep stage X' and got.where == ref.files[1]
    kemp(tmp_path / KEMP.name, [(0, 30, '?')])
    assert isinstance(got := sleep.read(ref), Finding) and got.found == 'none'
    kemp(tmp_path / KEMP.name, NIGHT)
    path = Path(ref.files[0])
    path.write_bytes(path.read_bytes()[:-1000])
    assert 'truncated' in str(sleep.read(ref))
    write(path, ['Event marker', 'Fpz-Cz'], 100, 300)
    assert 'the channels of the set must be there' in str(sleep.read(ref))


@pytest.fixture
def clinical(tmp_path) -> Path:
    """Two files of one subject, one of another."""
    root = tmp_path / TUAB.name / 'edf'
    for name in ('train/normal/01_tcp_ar/aab_s001_t000', 'eval/abnormal/01_tcp_ar/aaa_s002_t001'):
        write(root / f'{name}.edf', TUAB_NAMES, 250, 60)
    write(root / 'eval/abnormal/01_tcp_ar/aaa_s001_t000.edf', TUAB_NAMES, 256, 60)
    return tmp_path


def test_files_of_tuab_are_found_by_part_and_label(clinical) -> None:
    refs = find_recordings(TUAB, clinical)
    assert [(r.subject, r.session, r.run, *dict(r.fields).values()) for r in refs] == [
        ('aaa', 's001', 't000', 'eval', 'abnormal'),
        ('aaa', 's002', 't001', 'eval', 'abnormal'),
        ('aab', 's001', 't000', 'train', 'normal'),
    ]
    for name in ('a_b_c', 'train/a_b_c', 'train/other/a_b_c'):  # in no folder of a part and a label
        (clinical / TUAB.name / 'edf' / f'{name}.edf').parent.mkdir(exist_ok=True)
        (clinical / TUAB.name / 'edf' / f'{name}.edf').touch()
    assert find_recordings(TUAB, clinical) == refs


def test_a_file_of_tuab_has_electrodes_by_their_new_names(clinical) -> None:
    ref = find_recordings(TUAB, clinical)[0]
    raw, events = read(tuh, ref)
    kinds = dict(zip(raw.ch_names, raw.get_channel_types(), strict=True))
    assert kinds == {'Fp1': 'eeg', 'T7': 'eeg', 'T9': 'eeg', 'Cz': 'eeg', 'EEG EKG1-REF': 'ecg', 'PHOTIC-REF': 'misc'}
    assert check_recording.check(Recording(raw, events), TUAB, 'x') == []
    table = event_table(Recording(raw, events), ref, TUAB)
    assert {k: list(table[k]) for k in ('type', 'label', 'split')} == {
        'type': ['Eeg'],
        'label': ['abnormal'],
        'split': ['eval'],
    }
    assert tuh._electrode('EEG FP1-F7') == 'Fp1-F7' and tuh._electrode('EEG T5-P3') == 'P7-P3'


TABLE = """# version = csv_v1.0.0
# bname = aaa_s001_t000
# duration = 60.00 secs
# montage_file = nedc_eas_default_montage.txt
#

channel,start_time,stop_time,label,confidence
FP1-F7,10.5,12.5,eyem_musc,1.0
FP2-F8,10.5,12.5,eyem,1.0
F7-T3,3.0,4.0,elec,1.0
T3-T5,58.0,61.0,chew,1.0
"""


def test_artefacts_of_tuar_are_events_of_one_kind_each(tmp_path) -> None:
    path = tmp_path / TUAR.name / 'edf' / '01_tcp_ar' / 'aaa_s001_t000.edf'
    write(path, TUAB_NAMES, 400, 60)
    path.with_suffix('.csv').write_text(TABLE)
    (ref,) = find_recordings(TUAR, tmp_path)
    assert (ref.subject, ref.session, ref.run, ref.fields) == ('aaa', 's001', 't000', ())
    raw, events = read(tuh, ref)
    found = [tuple(events[k].tolist()) for k in ('onset', 'duration', 'state')]
    assert found == [(3.0, 10.5, 10.5, 58.0), (1.0, 2.0, 2.0, 2.0), ('elpp', 'eyem', 'musc', 'chew')]
    assert check_recording.check(Recording(raw, events), TUAR, 'x') == []
    for text, said in (
        (
            TABLE.replace('12.5', 'soon'),
            'must tell an artefact: found line 8: FP1-F7,10.5,soon,eyem_musc,1.0, expected',
        ),
        (TABLE.replace('3.0,4.0,elec,1.0', '3.0,4.0'), 'must tell an artefact: found line 10: F7-T3,3.0,4.0, expected'),
        (TABLE.replace('elec', ''), 'each line must tell an artefact: found line 10: F7-T3,3.0,4.0,,1.0, expected'),
        (TABLE.replace('label', 'name'), 'a table of artefacts must lie beside'),
        (TABLE[:100], 'a table of artefacts must lie beside'),
    ):
        path.with_suffix('.csv').write_text(text)
        assert isinstance(got := tuh.read(ref), Finding) and got.where == ref.files[1] and said in str(got)
    path.with_suffix('.csv').unlink()
    assert isinstance(got := tuh.read(ref), Finding) and got.where == ref.files[1]
