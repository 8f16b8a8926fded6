"""What a result is written as: tables, files, JSON, workbooks, the page.

- `result_table`: rows as a table, also for notebooks.
- `result_files`, `csv_text`, `result_workbook`: files of it.
- `result_data`: the result as data, of `plain_values`; `job_files`: JSON, JUnit and Markdown of it.
- `page_content`, `row_context`: what the page shows.
"""
