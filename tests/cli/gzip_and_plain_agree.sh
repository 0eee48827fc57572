gzip -dc $TRACES/torch214_cpu_resnet.json.gz >plain.json
opscope report operators plain.json --format=csv >plain.csv
opscope report operators $TRACES/torch214_cpu_resnet.json.gz --format=csv >gz.csv
cmp plain.csv gz.csv && wc -l <gz.csv
