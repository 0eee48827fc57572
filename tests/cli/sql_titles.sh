# A query names its columns: their titles go to the terminal, so what is no text is shown as an escape.
opscope sql $TRACES/synthetic/two_steps.json "select count(*) as \"$(printf '\033[31mred')\" from span"
