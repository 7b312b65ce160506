'use strict';
// Tables that sort, filter and draw only the rows that are seen. Texts become text nodes, never markup.
(() => {
  const MARGIN = 20; // rows drawn beyond those that are seen
  const ALL = 120; // rows: so many are drawn at once
  const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

  function make(name, attributes = {}, ...content) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...content);
    return node;
  }

  // Numbers by which a column sorts; null is nothing, and comes last.
  function keys(column) {
    if (column.values) return column.values;
    const order = column.words.map((_, k) => k).sort((a, b) => collator.compare(column.words[a], column.words[b]));
    const place = [];
    order.forEach((word, k) => {
      const same = k > 0 && collator.compare(column.words[order[k - 1]], column.words[word]) === 0;
      place[word] = same ? place[order[k - 1]] : k;
    });
    const known = place.map((k, word) => (column.words[word] === '–' ? null : k));
    return column.at.map((word) => known[word]);
  }

  function sorted(rows, column, down) {
    column.keys = column.keys || keys(column);
    const by = column.keys;
    return rows.slice().sort((a, b) => {
      const x = by[a], y = by[b];
      if (x === y) return a - b;
      if (x === null) return 1;
      if (y === null) return -1;
      return down ? y - x : x - y;
    });
  }

  // A test for each filter that is set: row -> whether it stays.
  function tests(state) {
    const found = [];
    for (const { column, control } of state.choices) {
      if (!control.value) continue;
      const good = column.words.map((word) => word.split(', ').includes(control.value));
      found.push((row) => good[column.at[row]]);
    }
    for (const { column, control } of state.ticks) {
      if (!control.checked) continue;
      const good = column.words.map((word) => word === column.only[1]);
      found.push((row) => good[column.at[row]]);
    }
    const wanted = state.search ? state.search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    for (const text of wanted) {
      const columns = state.columns.filter((column) => !column.values);
      const good = columns.map((column) => column.words.map((word) => word.toLowerCase().includes(text)));
      found.push((row) => columns.some((column, k) => good[k][column.at[row]]));
    }
    return found;
  }

  function cell(column, row) {
    const text = column.words[column.at[row]];
    const link = column.links ? column.links[column.at[row]] : '';
    const node = make('td', column.values ? { class: 'number' } : {});
    if (text.length > column.width) node.title = text;
    if (column.ends && column.values[row] !== null) node.append(bar(column.values[row], column.ends[row]));
    if (column.ends) node.append(make('span', { class: 'value' }, text));
    else node.append(link ? make('a', { href: link }, text) : text);
    return node;
  }

  function bar(value, ends) {
    const at = (x) => Math.min(100, Math.max(0, 100 * x));
    const node = make('span', { class: 'bar', 'aria-hidden': 'true' });
    if (ends) {
      const [low, high] = ends.map(at);
      node.append(make('i', { style: `left:${low}%;width:${high - low}%` }));
    }
    node.append(make('b', { style: `left:${at(value)}%` }));
    return node;
  }

  // Draw the rows that are seen, and what has focus in them again.
  function draw(state, anew) {
    const { box, body, rows } = state;
    const few = rows.length <= ALL;
    const top = few ? 0 : Math.floor(box.scrollTop / state.height);
    const bottom = few ? rows.length : top + Math.ceil(box.clientHeight / state.height);
    if (!anew && state.from <= Math.max(0, top - 2) && state.to >= Math.min(rows.length, bottom + 2)) return;
    const from = Math.max(0, top - MARGIN), to = Math.min(rows.length, bottom + MARGIN);
    const focus = body.contains(document.activeElement) ? document.activeElement.closest('td') : null;
    const place = focus && [focus.parentElement.dataset.row, focus.cellIndex];
    const parts = document.createDocumentFragment();
    parts.append(...space(from, state));
    for (let k = from; k < to; k++) {
      const line = make('tr', { 'aria-rowindex': k + 2, 'data-row': rows[k] });
      line.append(...state.columns.map((column) => cell(column, rows[k])));
      parts.append(line);
    }
    parts.append(...space(rows.length - to, state));
    body.replaceChildren(parts);
    Object.assign(state, { from, to });
    if (place) {
      const line = body.querySelector(`tr[data-row="${place[0]}"]`);
      const link = line && line.cells[place[1]].querySelector('a');
      if (link) link.focus({ preventScroll: true });
    }
  }

  function space(n, state) {
    if (!n) return [];
    const filler = make('td', { colspan: state.columns.length });
    filler.style.height = `${n * state.height}px`;
    return [make('tr', { class: 'space', 'aria-hidden': 'true' }, filler)];
  }

  function update(state) {
    const good = tests(state);
    let rows = state.all;
    if (good.length) rows = rows.filter((row) => good.every((test) => test(row)));
    if (state.by !== null) rows = sorted(rows, state.columns[state.by], state.down);
    state.rows = rows;
    state.box.scrollTop = 0;
    state.heads.forEach((head, k) => {
      if (k === state.by) head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const n = (x) => x.toLocaleString('en');
    const left = rows.length === state.all.length ? '' : ` of ${n(state.all.length)}`;
    state.count.textContent = `${n(rows.length)}${left} rows`;
    state.table.setAttribute('aria-rowcount', rows.length + 1);
    draw(state, true);
  }

  function labelled(words, control) {
    return make('label', {}, make('span', {}, words), control);
  }

  function addFilters(state, data, place) {
    if (data.search) {
      state.search = make('input', { type: 'search', autocomplete: 'off', placeholder: 'task, model, ...' });
      state.search.addEventListener('input', () => update(state));
      place.append(labelled('Search', state.search));
    }
    for (const column of state.columns) {
      if (column.choose) {
        const words = [...new Set(column.words.flatMap((word) => word.split(', ')))].filter((word) => word !== '–');
        if (words.length < 2) continue;
        const control = make('select', {}, ...(column.start ? [] : [make('option', { value: '' }, 'all')]));
        control.append(...words.sort(collator.compare).map((word) => make('option', { value: word }, word)));
        if (column.start) control.value = words.includes(column.start) ? column.start : words[0];
        control.addEventListener('change', () => update(state));
        state.choices.push({ column, control });
        place.append(labelled(column.choose, control));
      }
      if (column.only) {
        const control = make('input', { type: 'checkbox' });
        control.addEventListener('change', () => update(state));
        state.ticks.push({ column, control });
        const box = labelled(column.only[0], control);
        box.className = 'tick';
        place.append(box);
      }
    }
  }

  function addSorting(state) {
    state.heads.forEach((head, k) => {
      const button = make('button', { type: 'button' }, head.textContent);
      button.addEventListener('click', () => {
        const numbers = Boolean(state.columns[k].values);
        state.down = state.by === k ? !state.down : numbers && !state.columns[k].up;
        state.by = k;
        update(state);
      });
      head.replaceChildren(button);
    });
  }

  function start(section) {
    const data = JSON.parse(section.querySelector('script').textContent);
    const table = section.querySelector('table');
    const state = {
      columns: data.columns,
      all: Array.from({ length: data.n }, (_, k) => k),
      by: null, down: false, from: 0, to: 0, choices: [], ticks: [], search: null,
      table, body: table.tBodies[0], heads: [...table.tHead.rows[0].cells],
      box: section.querySelector('.scroll'), count: section.querySelector('.count'),
    };
    state.height = state.body.rows[0].getBoundingClientRect().height || 32;
    addFilters(state, data, section.querySelector('.filters'));
    addSorting(state);
    let waits = false;
    state.box.addEventListener('scroll', () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => { waits = false; draw(state, false); });
    });
    new ResizeObserver(() => draw(state, false)).observe(state.box);
    update(state);
  }

  document.addEventListener('DOMContentLoaded', () => {
    document.querySelectorAll('section.table').forEach(start);
    document.addEventListener('keydown', (event) => {
      const field = document.querySelector('input[type=search]');
      const typing = event.target.closest('input, select, textarea');
      if (event.key === '/' && field && !typing && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        field.focus();
      }
    });
  });
})();
