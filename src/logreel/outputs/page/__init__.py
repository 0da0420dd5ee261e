"""Pages about logs that work offline, and plots as text and pictures: ``logreel.plot`` and ``logreel.report``.

``plot`` draws chosen fields in a terminal, as pictures and as a page; ``report`` collects what a person should see
first, on the page of ``report_page``, with the drawings of ``track``. Both pages come from ``html``, with the scripts
in ``static``. What is drawn is worked out in ``logreel.meaning``.
"""
