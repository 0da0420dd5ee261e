"""Everything that is made of logs but answers: files, folders, pages, servers and live connections.

``convert`` writes any output that ``registry`` names, ``merge_formats`` one log of several; ``write``, ``job`` and
``files`` write tables and files that appear complete or not at all. Each folder is a kind of output. The command line,
fleets and ``logreel`` call them; outputs do not call each other's folders.
"""
