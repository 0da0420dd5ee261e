"""Pictures, videos, point clouds and packets as files of their usual formats, and positions in pictures.

A ``write`` or ``write_NAME`` is an output of ``outputs/registry``; ``pictures`` turns the pictures of a lens into
encoded ones, pixels and frames of a video, also for datasets, Rerun and the viewer. ``geotag`` is a verb of its own.
"""
