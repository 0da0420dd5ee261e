"""Changes of logs: names, frames, times, fields, metadata, and what others should not see.

``recipe`` is what to change, and what that means for each channel; ``edit`` is the transform and the function behind
the verb. ``field_edits`` replaces fields in messages, ``masks`` and ``place_mask`` say what texts and places become,
``residue`` searches what was written and imports none of these.

``logreel.edit`` and conversions with edits call it.
"""
