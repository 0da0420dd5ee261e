"""The log formats of logreel, a folder for each; the registry lists every folder here that has a ``FORMAT``.

No code outside of a folder imports it, and no format imports another one: everything goes through ``registry.Format``.
Rooms have the same names in all formats: ``reader``, ``framing``, ``index_builder`` and ``scan_builder`` find messages,
``definitions`` gives their Layouts, ``verify`` checks a file; ``writer``, ``schema_maker``, ``copier`` and ``append``
write; ``meaning``, ``charts`` and ``health`` say what a log tells of a flight, a drive or a walk.
"""
