"""The page of a detection: one self-contained HTML file that opens offline.

- `content`: what the page shows. `prepare`: collects and packs it. `page`: the file.
- `bins`, `packed_columns`, `history_strip`: parts of it.
- `_scripts`: draw, filter, mark; `_report.css`, `_template.html`: how it looks.
"""
