"""What a result is written as: text, tables, files, JSON, workbooks, the page.

- `result_text`: for terminals and notebooks. `result_table`: rows as a table.
- `result_files`, `csv_text`, `result_workbook`: files of it.
- `result_data`: the result as data, of `plain_values`; `job_files`: JSON, JUnit and Markdown of it.
- `page_content`, `row_context`: what the page shows.
"""
