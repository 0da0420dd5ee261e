"""Logs in object stores and on web servers, of which only the bytes that are used are fetched."""
