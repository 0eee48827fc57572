T=$TRACES/torch214_cpu_resnet.json.gz
S=$TRACES/synthetic/two_steps.json

# What there is, and what one is about.
opscope export | grep chrome | cut -c1-60
opscope export chrome-list --help | head -16

# Wrong usage: one line, status 2.
(opscope export crome $S 2>&1 | cut -d"?" -f1) || echo "status $?"
opscope export chrome || echo "status $?"
opscope export chrome $S --compat=torch-2.6 || echo "status $?"
opscope export chrome-list $S --compat=torch-9 || echo "status $?"
opscope export chrome $S --device=0 || echo "status $?"
opscope export chrome $S nothing.json || echo "status $?"
cp $S same.json
opscope export chrome same.json -o same.json || echo "status $?"

# What cannot be done: one line, status 1, and no file.
opscope export chrome $S --steps=7..9 -o x.json || echo "status $?"
opscope export chrome $S -o nowhere/x.json || echo "status $?"
opscope export chrome $S -o /dev/full || echo "status $?"
ls

# The form.
opscope export chrome $S -o two.json
head -3 two.json
opscope export chrome $S -o two.json.gz
zcat two.json.gz | cmp - two.json && echo same
opscope export chrome $S --gzip | zcat | cmp - two.json && echo same
opscope export chrome two.json | cmp - two.json && echo same
opscope import $S -o two.opscope
opscope export chrome two.opscope | head -3
opscope export chrome-list $S -o list.json
head -c 300 list.json
