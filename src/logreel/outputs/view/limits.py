"""Limits of requests to the viewer, in one place."""

from __future__ import annotations

#: Logs of a folder that are shown together.
LOGS = 32
#: Pixels of a drawing, and the number of points that are sent for each at most.
PIXELS, POINTS_PER_PIXEL = 16384, 4
#: Columns of the overview.
BINS = 4096
#: Series of one request.
SERIES = 64
#: Channels in one answer, and fields of one channel.
CHANNELS, FIELDS = 20_000, 2000
#: Marks, and gaps, in the overview.
MARKS, GAPS = 1000, 1000
#: Gaps that come with a curve, the longest ones.
HATCHED = 200
#: Messages of a channel up to which findings look into it, and intervals of one finding that are sent.
FINDINGS_MESSAGES, SPANS = 1_000_000, 50
#: Fields whose statistics are sent side by side, the most different ones.
BESIDE = 2000
#: Points of a curve of one field over another.
PAIRS = 20_000
#: Items of an array that is drawn at one moment.
ITEMS = 100_000
#: Width and height of a spectrogram.
SPECTROGRAM = 2048
#: Items of a list, characters of a text and nodes of a message in the inspector.
LIST_ITEMS, TEXT_CHARACTERS, MESSAGE_NODES = 200, 10_000, 20_000
#: Lines of text in one answer, and characters that are searched for.
LINES, SEARCH_CHARACTERS = 2000, 200
#: Characters of an SQL expression, seconds that it may take, and rows that it may look at.
SQL_CHARACTERS, SQL_SECONDS, SQL_ROWS = 2000, 10.0, 5_000_000
#: Memory of an SQL expression.
SQL_MEMORY = "256MB"
#: Parameters, and problems, in one answer.
PARAMETERS, PROBLEMS = 20_000, 10_000
#: Characters of a parameter of a request.
CHARACTERS = 4000
#: Bytes that a page sends: a note, or what a document shows, with pictures of its panels; bytes of one picture.
BODY, DOCUMENT, STILL = 1 << 20, 6 << 20, 2 << 20
#: Threads that answer, and requests that may wait for one.
THREADS, WAITING = 4, 256
#: Seconds that the answer about the session waits for logs that are still being opened.
OPENING = 1.0
#: Rows up to which a column is kept in memory whole, and bytes of all such columns.
ROWS_IN_MEMORY, COLUMN_BYTES = 1 << 18, 64 << 20
#: Seconds that a request for a large column waits for its pyramid before it is answered with samples, and seconds
#: after which a pyramid is given up for which nobody asks any more.
PATIENCE, LINGER = 0.3, 60.0
#: Rows that a function or a spectrogram may need at once.
FUNCTION_ROWS = 4_000_000
#: Seconds between two comments in the stream of events, which keep the connection alive.
HEARTBEAT = 15.0
