"""The evaluation of the paper: rivals, data sets, runs, tables, figures and the report."""
