"""HTTP on this machine: the lens page. Web assets are plain ES modules in `static/`, without a build step or a CDN.

May import lens, bundle and everything below them.
"""
