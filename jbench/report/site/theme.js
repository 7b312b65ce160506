'use strict';
// Dark or light: as the system says, until the reader chooses; before the page is drawn, so that nothing flashes.
(() => {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const stored = {
    get() { try { return localStorage.getItem('jbench-theme'); } catch { return null; } },
    set(value) { try { localStorage.setItem('jbench-theme', value); } catch { /* kept for this page alone */ } },
  };
  const chosen = stored.get();
  if (chosen === 'dark' || chosen === 'light') root.dataset.theme = chosen;
  const now = () => root.dataset.theme || (system.matches ? 'dark' : 'light');
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const tell = () => { button.textContent = now() === 'dark' ? 'Light colours' : 'Dark colours'; };
    button.addEventListener('click', () => {
      root.dataset.theme = now() === 'dark' ? 'light' : 'dark';
      stored.set(root.dataset.theme);
      tell();
    });
    system.addEventListener('change', tell);
    button.hidden = false;
    tell();
  });
})();
