# Narrow tables: answers stay, what is the same in every row is said once, rows that differ look different. COLUMNS is a width, also in a pipe.
for width in 120 80; do
  opscope report roofline $TRACES/synthetic/costs_gpu.json --width=$width
  opscope report conv $TRACES/synthetic/costs_gpu.json --width=$width --sort=min_gpu_ns
done

for columns in 80 20 10000 19 10001 x ""; do
  width=$(COLUMNS=$columns opscope report roofline $TRACES/synthetic/costs_gpu.json | sed -n '3{s/./x/g;p}' | tr -d '\n' | wc -c)
  echo "COLUMNS=$columns: $width"
done
COLUMNS=80 opscope report roofline $TRACES/synthetic/costs_gpu.json -o file.txt
cmp file.txt <(opscope report roofline $TRACES/synthetic/costs_gpu.json)
# Titles of findings, too, in lines that fit.
for columns in 80 160; do
  COLUMNS=$columns opscope advise $TRACES/synthetic/memory_view.json >findings
  echo "COLUMNS=$columns: $(awk -v most=$columns 'length > most' findings | wc -l) lines too long"
  grep -A1 "low-gpu-utilization  Same" findings
done
