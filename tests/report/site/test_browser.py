"""The leaderboard in a browser: sorting, filters, links, keys, both colours, rules of accessibility; no request.

Needs Chromium and its driver (Debian: apt-get install chromium chromium-driver); skipped without them, unless
JBENCH_BROWSER=required.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from urllib.parse import unquote

import pytest
from places import FIXTURES
from result_files import store

from jbench.report import summary
from jbench.report.site import build
from jbench.results import index

pytestmark = pytest.mark.slow

HOSTILE = '<script>document.title = "broken"</script>'
WCAG = {  # without `preload`, which asks for the style sheet again
    'runOnly': {'type': 'tag', 'values': ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']},
    'preload': 0,
}
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
ROWS, SECONDS = 50_000, 2.0  # of a large table, and how long a filter or a sort of it may take


def chromium() -> tuple[str, str]:
    """Paths of the browser and of its driver."""
    found = [path for name in BROWSERS if (path := shutil.which(name))]
    driver = shutil.which('chromedriver')
    if not found or not driver:
        words = 'no Chromium and chromedriver here; on Debian: apt-get install chromium chromium-driver'
        (pytest.fail if os.environ.get('JBENCH_BROWSER') == 'required' else pytest.skip)(words)
    return found[0], str(driver)


def test_without_a_browser_it_fails_where_one_is_required_and_skips_elsewhere(monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    monkeypatch.setenv('JBENCH_BROWSER', 'required')
    with pytest.raises(pytest.fail.Exception, match='chromium-driver'):
        chromium()
    monkeypatch.delenv('JBENCH_BROWSER')
    with pytest.raises(pytest.skip.Exception, match='chromium-driver'):
        chromium()


@pytest.fixture(scope='module')
def browser():
    """Chromium without a window, that logs what it prints and what it asks for."""
    binary, driver = chromium()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--window-size=1280,900'):
        options.add_argument(flag)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    made = webdriver.Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


@pytest.fixture
def page(browser):
    """The browser; afterwards, that no page complained or asked for anything that is no file."""
    browser.get_log('browser')
    browser.get_log('performance')
    browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    yield browser
    assert [line for line in browser.get_log('browser') if line['level'] != 'INFO'] == []
    sent = [json.loads(line['message'])['message'] for line in browser.get_log('performance')]
    asked = [m['params']['request']['url'] for m in sent if m['method'] == 'Network.requestWillBeSent']
    assert asked and [url for url in asked if not url.startswith(('file:///', 'data:'))] == []
    assert not any(m['method'] == 'Network.loadingFailed' for m in sent)


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """Published scores, a few of our own beside them, one of a model whose name is markup, and a figure."""
    work, out = tmp_path_factory.mktemp('work'), tmp_path_factory.mktemp('out')
    known = {'task': 'ssvep', 'dataset': 'Wang2017Benchmark', 'chance': 0.1, 'dummy': 0.1}
    for model, value in (('eegnet', 0.7), ('dummy', 0.1), (HOSTILE, 0.6)):
        store(work, model, value, headline={'value': value, 'interval': [value / 2, 0.8]}, key='k', **known)
    store(work, 'eegnet', 0.6, task='age', simulated=True)
    (out / 'figures').mkdir()
    (out / 'figures' / 'index.csv').write_text('stem,kind,origin,task,dataset,title\nranks,ranks,own,,,Ranks\n')
    (out / 'figures' / 'ranks.svg').write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    (out / 'figures' / 'ranks.csv').write_text('a\n')
    build.build(summary.collect([work], publication=str(FIXTURES / 'neuralbench_results.csv')), out)
    return out / 'site'


@pytest.fixture(scope='module')
def large(tmp_path_factory):
    """The page of 50,000 results, from one."""
    work, out = tmp_path_factory.mktemp('work'), tmp_path_factory.mktemp('out')
    store(work)
    (row,) = index.scan([work]).rows
    rows = [row._replace(model=f'model {k % 17}', seed=k, value=k / ROWS) for k in range(ROWS)]
    build.build(summary.Report((str(work),), ROWS, rows, [], []), out)
    return out / 'site'


def column(page, table, k):
    """The texts of a column, of the rows that are drawn."""
    cells = f'return [...document.querySelectorAll("#{table} tbody tr:not(.space)")].map(r => r.cells[{k}].textContent)'
    return page.execute_script(cells)


def title(page, table, name):
    """The button that sorts by a column, and its place."""
    heads = page.find_elements('css selector', f'#{table} th')
    names = [head.text.strip() for head in heads]
    return heads[names.index(name)].find_element('tag name', 'button'), names.index(name)


def control(page, table, name):
    """A filter of a table."""
    label = f'//section[@id="{table}"]//label[starts-with(., "{name}")]'
    return page.find_element('xpath', f'{label}/*[self::select or self::input]')


def count(page, table):
    return page.find_element('css selector', f'#{table} .count').text


def choose(page, table, name, value):
    from selenium.webdriver.support.ui import Select

    Select(control(page, table, name)).select_by_value(value)


def press(page, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page).send_keys(*keys).perform()


def focused(page):
    return page.execute_script('return document.activeElement.textContent.trim()')


def test_a_table_sorts_both_ways_with_nothing_last(page, site):
    page.get((site / 'index.html').as_uri())
    button, k = title(page, 'scores', 'Normalised')
    for way, sign in (('descending', -1), ('ascending', 1)):
        button.click()
        values = [sign * float(x) for x in column(page, 'scores', k)]
        assert values == sorted(values) and len({*values}) > 10
        assert button.find_element('xpath', '..').get_attribute('aria-sort') == way
    button, k = title(page, 'scores', 'Model')
    button.click()
    names = [name.lower() for name in column(page, 'scores', k)[:60]]
    assert names == sorted(names) and names[0] == HOSTILE
    button, k = title(page, 'scores', '95 % interval')
    for _ in 'ab':
        button.click()
        shown = column(page, 'scores', k)
        assert [text == '–' for text in shown[:4]] == [False, False, False, True]


def test_filters_narrow_and_search_finds(page, site):
    page.get((site / 'index.html').as_uri())
    assert count(page, 'scores') == '610 rows'
    choose(page, 'scores', 'Suite', 'jbench-core')
    assert count(page, 'scores') == '3 of 610 rows' and len(column(page, 'scores', 0)) == 3
    choose(page, 'scores', 'Suite', '')
    choose(page, 'scores', 'Family', 'foundation')
    found = count(page, 'scores')
    control(page, 'scores', 'Clean only').click()
    rows = json.loads((site / 'index.scores.json').read_text())
    clean = sum(row['family'] == 'foundation' and row['overlap'] == 'clean' for row in rows)
    assert found == '216 of 610 rows' and count(page, 'scores') == f'{clean} of 610 rows' and 0 < clean < 216
    choose(page, 'scores', 'Family', '')
    control(page, 'scores', 'Clean only').click()
    control(page, 'scores', 'Search').send_keys('REVE sleep')
    assert {*column(page, 'scores', 0)} == {'REVE'}
    assert all('sleep' in text for text in column(page, 'scores', 1)) and count(page, 'scores') == '2 of 610 rows'


def test_ranks_are_shown_over_the_tasks_that_are_chosen(page, site):
    page.get((site / 'index.html').as_uri())
    assert count(page, 'models').startswith('3 of ')
    choose(page, 'models', 'Origin', 'published')
    assert column(page, 'models', 0)[:2] == ['REVE', 'LaBraM'] and len(column(page, 'models', 0)) == 17
    choose(page, 'models', 'Over', 'category sleep')
    shown = [r for r in json.loads((site / 'index.models.json').read_text()) if r['over'] == 'category sleep']
    assert column(page, 'models', 0) == [r['title'] for r in shown] and shown[0]['title'] != 'REVE'


def test_without_a_core_dataset_one_set_of_tasks_is_chosen_all_the_same(page, tmp_path):
    second = {'task': 'ssvep', 'dataset': 'Second', 'task_version': 1}
    for model, value in (('eegnet', 0.7), ('dummy', 0.5)):
        store(tmp_path, model, value, **second, config={'task': {'datasets': ['First', 'Second']}})
    page.get(build.build(summary.collect([tmp_path]), tmp_path).as_uri())
    lines = json.loads((tmp_path / 'site' / 'index.models.json').read_text())
    assert len({line['over'] for line in lines}) > 1 and len(lines) == 4
    assert control(page, 'models', 'Over').get_attribute('value') == 'all tasks (all datasets)'
    assert count(page, 'models') == '2 of 4 rows'


def test_links_lead_to_pages_and_names_stay_texts(page, site):
    from selenium.webdriver.support.ui import WebDriverWait

    page.get((site / 'index.html').as_uri())
    control(page, 'scores', 'Search').send_keys('document.title')
    link = page.find_element('css selector', '#scores tbody a')
    assert link.text == HOSTILE
    link.click()
    WebDriverWait(page, 10).until(lambda page: '/models/' in page.current_url)
    assert page.find_element('tag name', 'h1').text and page.title.endswith('- jbench')
    page.find_element('css selector', '#scores tbody a').click()
    WebDriverWait(page, 10).until(lambda page: page.title == 'ssvep@2 - jbench')
    assert unquote(page.current_url).endswith('/tasks/ssvep@2.html')
    assert HOSTILE in column(page, 'scores', 0)
    page.find_element('link text', 'Figures').click()
    WebDriverWait(page, 10).until(lambda page: page.execute_script('return document.images[0].naturalWidth') == 9)


def test_the_keyboard_does_what_the_mouse_does(page, site):
    from selenium.webdriver.common.keys import Keys

    page.get((site / 'index.html').as_uri())
    press(page, Keys.TAB)
    assert focused(page) == 'To the content'
    press(page, '/')
    press(page, 'reve reaction_time')
    assert count(page, 'scores') == '1 of 610 rows'
    button, _ = title(page, 'scores', 'Score')
    page.execute_script('arguments[0].focus()', button)
    press(page, Keys.ENTER)
    assert button.find_element('xpath', '..').get_attribute('aria-sort') == 'descending'
    while focused(page) != 'REVE':
        press(page, Keys.TAB)
    press(page, Keys.ENTER)
    assert page.current_url.endswith('/models/reve_base.html')


def test_a_link_keeps_the_focus_while_rows_are_drawn(page, site):
    from selenium.webdriver.common.keys import Keys

    page.get((site / 'index.html').as_uri())
    first = page.find_element('css selector', '#scores tbody a')
    page.execute_script('arguments[0].focus()', first)
    seen = set()
    for _ in range(240):  # three links a row
        press(page, Keys.TAB)
        at = page.execute_script('return document.activeElement.closest("#scores tbody tr")?.dataset.row')
        assert at is not None
        seen.add(int(at))
    assert seen >= set(range(1, 80))


def test_colours_follow_the_system_until_they_are_chosen(page, site):
    from selenium.webdriver.support.ui import WebDriverWait

    def ground():
        whole = 'return document.readyState === "complete" && document.body !== null'
        WebDriverWait(page, 10).until(lambda page: page.execute_script(whole))
        return page.execute_script('return getComputedStyle(document.body).backgroundColor')

    page.get((site / 'index.html').as_uri())
    seen = []
    for scheme in ('dark', 'light'):
        media = {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]}
        page.execute_cdp_cmd('Emulation.setEmulatedMedia', media)
        seen.append(ground())
    assert seen == ['rgb(18, 22, 27)', 'rgb(255, 255, 255)']
    switch = page.find_element('id', 'theme')
    WebDriverWait(page, 10).until(lambda page: switch.text == 'Dark colours')
    switch.click()
    assert ground() == seen[0] and switch.text == 'Light colours'
    page.get((site / 'tasks.html').as_uri())
    assert ground() == seen[0]  # it is kept
    page.execute_script('localStorage.clear()')


@pytest.mark.parametrize('scheme', ['dark', 'light'])
@pytest.mark.parametrize('width', [1280, 390])
def test_rules_of_accessibility_hold(page, site, scheme, width):
    from selenium_axe_python import Axe

    size = {'width': width, 'height': 844, 'deviceScaleFactor': 1, 'mobile': width < 500}
    page.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
    media = {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]}
    page.execute_cdp_cmd('Emulation.setEmulatedMedia', media)
    for name in ('index', 'left_out', 'figures', 'tasks/ssvep@2', 'models/eegnet', 'datasets/Wang2017Benchmark'):
        page.get((site / f'{name}.html').as_uri())
        axe = Axe(page)
        axe.inject()
        found = axe.run(options=WCAG)
        assert found['passes'] and [(v['id'], v['nodes'][0]['html']) for v in found['violations']] == [], name
        assert page.execute_script('return document.documentElement.scrollWidth') <= width, name


def test_fifty_thousand_rows_stay_quick(page, large):
    page.get((large / 'results.html').as_uri())
    assert count(page, 'results') == '50,000 rows'

    def drawn():
        return page.execute_script('return document.querySelectorAll("#results tbody tr").length')

    def timed(action):
        began = time.perf_counter()
        action()
        assert time.perf_counter() - began < SECONDS and drawn() < 150

    button, k = title(page, 'results', 'Score')
    timed(button.click)
    assert column(page, 'results', k)[0] == '100.0'
    timed(lambda: control(page, 'results', 'Search').send_keys('16'))
    assert count(page, 'results') == '2,941 of 50,000 rows'
    control(page, 'results', 'Search').clear()
    press(page, ' ', '\ue003')  # a blank and backspace: as a person empties the field
    scroll = 'const box = document.querySelector(".scroll"); box.scrollTop = box.scrollHeight;'
    timed(lambda: page.execute_script(scroll))
    time.sleep(0.3)  # a frame
    assert column(page, 'results', k)[-1] == '0.0' and drawn() < 150
