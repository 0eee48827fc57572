# Its dictionaries are about kernels alone: one line, status 1, and no file.
opscope export pyprof-dict $TRACES/torch214_cpu_resnet.json.gz -o x.dict || echo "status $?"
ls
opscope report --format=csv --columns=name | grep -x pyprof
