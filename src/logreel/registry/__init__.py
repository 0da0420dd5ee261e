"""What can be added to logreel, and the opening of logs with it.

``plugins.Registry`` is the registry of formats, definition languages, lenses, detectors, outputs, sinks and sources, of
logreel and of other packages. ``format.Format`` describes a log format; ``registry`` finds that of a file, ``open``
opens it, ``open_parts`` several files as one log, and ``index_cache`` keeps what was read for the next time.
"""
