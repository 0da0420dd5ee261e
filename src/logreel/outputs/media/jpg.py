"""Pictures as files: encoded ones as they are, raw ones as PNG."""

from __future__ import annotations

from logreel.lenses import Picture
from logreel.outputs.media.items import Item
from logreel.outputs.media.pictures import encoded
from logreel.outputs.media.pixels import pixels_of
from logreel.outputs.media.png import png


def write(picture: Picture) -> Item:
    """JPEG and PNG byte for byte, raw pixels as PNG; colours subsampled as YUV become RGB.

    Raises UnsupportedError for a picture that is broken, has another size than it is said to have, or fits no
    picture file.
    """
    if (pixels := pixels_of(picture)) is not None:
        return Item(".png", [png(pixels)])
    whole = encoded(picture)
    return Item(whole.kind, [whole.data])
