"""Files on servers: addresses such as ``s3://bucket/key``, object stores, and copies that are downloaded in parts.

Called by ``io.open_source`` and by what lists the logs of a folder on a server.
"""
