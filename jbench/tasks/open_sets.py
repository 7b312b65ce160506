"""Small openly available recordings; ours, not NeuralBench's: windows and signals that keep what is known to be there.

`configs/real_check.py` runs them all, and compares the scores with floors that were measured on the same files without
jbench. Signals in microvolts (scaler 'micro') keep the differences between channels and between recordings, which
scaling each channel by itself removes.
"""

from __future__ import annotations

from jbench.spec.task import ByGroup, Classes, Exclusion, Recipe, SignalSpec, Task, Window

# few windows: a higher rate, and patience beyond the noise of a small validation part
RECIPE = Recipe(lr=1e-3, max_epochs=40, patience=10, class_weights=True)
FEW = Recipe(lr=3e-3, least_steps=1000, patience=10, patience_steps=300, class_weights=True)  # a step or four an epoch
NO_COPIES = (Exclusion('UCI_EMG_LowerLimb', 'N02', 'sitting and standing are copies of N01'),)
SEGMENT = Window(trigger='Eeg', duration=5.0, stride=5.0)  # of a recording
HALF_SECOND = Window(trigger='Emg', duration=0.5, stride=0.5)


def _microvolts(sfreq: float, low: float, high: float, *more: str) -> SignalSpec:
    """Band-passed EEG (and channels of other types) in microvolts; no notch, since no band reaches the line."""
    return SignalSpec(picks=('eeg', *more), sfreq=sfreq, band=(low, high), notch=(), scaler='micro', clamp=200.0)


EVOKED = _microvolts(128.0, 1.0, 30.0)
BOLD = SignalSpec(picks=('misc',), sfreq=0.4, band=None, notch=(), scaler='standard')
MUSCLE = SignalSpec(picks=('emg',), sfreq=1000.0, band=None, notch=(), scaler='micro', clamp=2000.0)
TRIAL = SignalSpec(sfreq=256.0, band=None, notch=(), scaler='micro', clamp=200.0)  # of one second: too short to filter

TASKS = (
    Task(
        name='kalunga_ssvep',
        category='open_sets',
        paradigm='ssvep',
        title='Which flicker was looked at, from 0.5 s after the cue',
        datasets=('Kalunga2016Online',),
        window=Window(start=0.5, duration=4.0),
        signal=_microvolts(256.0, 5.0, 45.0),
        recipe=FEW,
    ),
    Task(
        name='zyma_arithmetic',
        category='open_sets',
        paradigm='rstate',
        title='Whether a person calculates or rests',
        datasets=('Zyma2019Electroencephalograms',),
        window=SEGMENT,
        target=Classes(field='task'),
        signal=_microvolts(125.0, 1.0, 40.0),
        recipe=FEW,
    ),
    Task(
        name='schalk_fists',
        category='open_sets',
        paradigm='imagery',
        title='Whether the left or the right fist was imagined, from run to run',
        datasets=('Schalk2004Bci2000',),
        window=Window(trigger='Action', start=0.5, duration=3.0),
        target=Classes(field='label', prefix='imagery_'),
        signal=_microvolts(160.0, 8.0, 30.0),
        split=ByGroup(by='run'),
        recipe=RECIPE,
    ),
    Task(
        name='schalk_eyes',
        category='open_sets',
        paradigm='rstate',
        title='Whether the eyes are open or closed, from one time of the run to another',
        datasets=('Schalk2004Bci2000',),
        window=Window(trigger='EyeBlock', duration=2.0, stride=2.0),
        target=Classes(field='label'),
        signal=_microvolts(160.0, 1.0, 40.0),
        split=ByGroup(by='block'),
        recipe=FEW,
    ),
    Task(
        name='zyma_quality',
        category='open_sets',
        paradigm='rstate',
        title='How well a person counts (nobody is known to tell it from this: a control)',
        datasets=('Zyma2019Electroencephalograms',),
        window=SEGMENT,
        target=Classes(field='count_quality', prefix='quality_'),
        signal=_microvolts(125.0, 1.0, 40.0),
        recipe=RECIPE,
        metric='auroc',
    ),
    Task(
        name='muse_p3',
        category='open_sets',
        paradigm='p300',
        title='Whether a stimulus was the rare target, four electrodes of a headband, from recording to recording',
        datasets=('MuseERP',),
        window=Window(trigger='P300', start=-0.1, duration=0.9),
        target=Classes(field='label'),
        signal=EVOKED,
        split=ByGroup(by='p300_recording'),
        recipe=RECIPE,
        metric='auroc',
    ),
    Task(
        name='muse_n170',
        category='open_sets',
        paradigm='erp',
        title='Whether a face or a house was shown, four electrodes of a headband, from recording to recording',
        datasets=('MuseERP',),
        window=Window(trigger='N170', start=-0.1, duration=0.9),
        target=Classes(field='label'),
        signal=EVOKED,
        split=ByGroup(by='n170_recording'),
        recipe=RECIPE,
        metric='auroc',
    ),
    Task(
        name='muse_ssvep',
        category='open_sets',
        paradigm='ssvep',
        title='Whether the flicker had 20 or 30 Hz, a headband and an electrode at POz, from recording to recording',
        datasets=('MuseERP',),
        window=Window(trigger='SSVEP', duration=2.5),
        target=Classes(field='label'),
        signal=_microvolts(256.0, 5.0, 45.0, 'misc'),
        split=ByGroup(by='ssvep_recording'),
        recipe=RECIPE,
    ),
    Task(
        name='dreams_sleep_stage',
        category='open_sets',
        paradigm='sleep',
        title='Wake, N1, N2 or N3 every 5 s, from one channel and 15 s before and after',
        datasets=('DREAMS',),
        window=Window(trigger='Stage', start=-15.0, duration=35.0),
        target=Classes(field='label'),
        signal=_microvolts(50.0, 0.5, 25.0),
        recipe=RECIPE,
    ),
    Task(
        name='dreams_spindles',
        category='open_sets',
        paradigm='sleep',
        title='Whether a second of sleep is a spindle',
        datasets=('DREAMS',),
        window=Window(trigger='Second', duration=1.0),
        target=Classes(field='label'),
        signal=_microvolts(50.0, 0.5, 25.0),
        recipe=RECIPE,
        metric='auroc',
    ),
    Task(
        name='smni_alcoholism',
        category='open_sets',
        paradigm='erp',
        title='Whether a subject is alcoholic, from one evoked response',
        datasets=('UCI_SMNI_alcoholism',),
        window=Window(duration=1.0),
        target=Classes(field='group'),
        signal=TRIAL,
        recipe=RECIPE,
    ),
    Task(
        name='smni_match',
        category='open_sets',
        paradigm='erp',
        title='Whether a second picture matched the first',
        datasets=('UCI_SMNI_alcoholism',),
        window=Window(duration=1.0),
        target=Classes(field='label', prefix='S2'),
        signal=TRIAL,
        recipe=RECIPE,
    ),
    Task(
        name='lower_limb_activity',
        device='emg',
        category='open_sets',
        paradigm='emg',
        title='Walking, sitting or standing, from half a second of four leg muscles',
        datasets=('UCI_EMG_LowerLimb',),
        window=HALF_SECOND,
        target=Classes(field='exercise'),
        signal=MUSCLE,
        recipe=RECIPE,
        exclude=NO_COPIES,
    ),
    Task(
        name='lower_limb_pathology',
        device='emg',
        category='open_sets',
        paradigm='emg',
        title='Whether the knee is healthy (nobody is known to tell it from this: a control)',
        datasets=('UCI_EMG_LowerLimb',),
        window=HALF_SECOND,
        target=Classes(field='group'),
        signal=MUSCLE,
        recipe=RECIPE,
        exclude=NO_COPIES,
    ),
    Task(
        name='haxby_objects',
        device='fmri',
        category='open_sets',
        paradigm='fmri',
        title='Which of eight categories of objects was seen, from one volume, from run to run',
        datasets=('Haxby2001_slice',),
        window=Window(duration=2.5),
        target=Classes(field='label'),
        signal=BOLD,
        split=ByGroup(by='run'),
        recipe=RECIPE,
    ),
    Task(
        name='haxby_faces',
        device='fmri',
        category='open_sets',
        paradigm='fmri',
        title='Whether a face or a house was seen, from one volume, from run to run',
        datasets=('Haxby2001_slice',),
        window=Window(duration=2.5),
        target=Classes(field='face_house', prefix='is_'),
        signal=BOLD,
        split=ByGroup(by='run'),
        recipe=RECIPE,
    ),
    Task(
        name='finger_tapping',
        device='fnirs',
        category='open_sets',
        paradigm='fnirs',
        title='Whether fingers tapped, 5 to 13 s after the onset',
        datasets=('Homer3_GrpTap_fNIRS',),
        window=Window(start=5.0, duration=8.0),
        target=Classes(field='label'),
        signal=SignalSpec(picks=('hbo', 'hbr'), sfreq=5.0, band=(0.01, 0.2), notch=(), scaler='micro'),
        recipe=RECIPE,
    ),
)
