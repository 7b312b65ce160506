"""Labels that look like one and are several are named before they become classes."""

from __future__ import annotations

import unicodedata

import pytest

from jbench.targets import alike

NFC, NFD = 'ge\u00f6ffnet', unicodedata.normalize('NFD', 'ge\u00f6ffnet')


@pytest.mark.parametrize(
    ('labels', 'named'),
    [
        (('closed', 'open', 'Open'), "'open' and 'Open'"),
        (('open', 'open '), "'open' and 'open '"),
        (('open', '\u00a0open'), "'open' and '\\xa0open'"),
        ((NFC, NFD), "'geöffnet' and 'geo\\u0308ffnet'"),
        (('1', '\uff11'), "'1' and '\\uff11'"),
        (('STRASSE', 'stra\u00dfe', 'x'), "'STRASSE' and 'straße'"),
        (('a', 'A', 'b', 'B '), "'a' and 'A'; 'b' and 'B '"),
        (('open', 'closed', 'open eyes', 'openeyes', ''), ''),
        ((), ''),
    ],
)
def test_labels_that_may_mean_the_same_are_named(labels, named):
    said = alike.told(labels)
    assert bool(said) == bool(named)
    assert all(f'classes of their own: {named};' in text for text in said)


def test_many_are_cut_short():
    (said,) = alike.told([c for k in range(9) for c in (f'a{k}', f'A{k}')])
    assert "'a4' and 'A4' and 4 more; write" in said and 'a5' not in said
