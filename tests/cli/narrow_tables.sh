# Tables on narrow terminals: answers stay, what is the same in every row is said once, rows that differ look different.
for width in 120 80; do
  opscope report roofline $TRACES/synthetic/costs_gpu.json --width=$width
  opscope report conv $TRACES/synthetic/costs_gpu.json --width=$width --sort=min_gpu_ns
done
