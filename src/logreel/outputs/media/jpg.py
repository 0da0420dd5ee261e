"""Pictures as files: encoded ones unchanged, raw ones as PNG."""

from __future__ import annotations

from logreel.lenses import Picture
from logreel.outputs.media.items import MediaItem
from logreel.outputs.media.pictures import encoded, pixels_of, png


def write(picture: Picture) -> MediaItem:
    """Return JPEG and PNG unchanged, and raw pixels as PNG; YUV colours become RGB.

    Raises UnsupportedError for a picture that is broken, has another size than stated, or an encoding that no picture
    file can store.
    """
    if (pixels := pixels_of(picture)) is not None:
        return MediaItem(".png", [png(pixels)])
    blob = encoded(picture)
    return MediaItem(blob.kind, [blob.data])
