# The name of a file says nothing.
cp $TRACES/synthetic/self_time.json trace.exe
gzip -c trace.exe >trace.txt
opscope report operators trace.exe --format=csv --columns=name,calls
opscope report operators trace.txt --format=csv --columns=name,calls
