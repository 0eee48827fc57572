# -o: written whole or not at all; the suffix chooses the format.
opscope report operators $TRACES/synthetic/self_time.json -o out.csv --columns=name,calls
cat out.csv
echo keep >old.csv
opscope report operators /nonexistent.json -o old.csv || echo "status $?"
cat old.csv
ls
# Text: by .txt, by no suffix, by "-"; any name when the format is said.
mkdir dir.d
for o in "-o a.txt" "-o dir.d/a" "-o .hidden" "-o m.xlsx --format=text"; do
	opscope report operators $TRACES/synthetic/self_time.json $o --columns=name,calls
done
opscope report operators $TRACES/synthetic/self_time.json -o - --columns=name,calls >stdout
for f in dir.d/a .hidden m.xlsx stdout; do cmp a.txt $f; done
head -1 a.txt
# What is no file is written to as it stands.
mkfifo pipe
cat pipe >from_pipe &
opscope report operators $TRACES/synthetic/self_time.json --columns=name,calls -o pipe
wait
cmp a.txt from_pipe
opscope report operators $TRACES/synthetic/self_time.json --columns=name,calls -o /dev/fd/3 3>&1 | cmp a.txt -
opscope report operators $TRACES/synthetic/self_time.json --columns=name,calls -o /dev/null
opscope report operators $TRACES/synthetic/self_time.json --columns=name,calls -o dir.d --format=text || echo "status $?"
rm pipe
# A .opscope file goes to no standard output, by no name: the file behind it would be replaced.
for name in - /dev/stdout; do opscope import $TRACES/synthetic/self_time.json -o $name >kept || echo "status $?"; done
wc -c <kept

# An .opscope file is never wider open than what it was made of; one that is replaced keeps its own permissions
umask 022
cp "$TRACES/synthetic/training_gpu.json" private.json
chmod 600 private.json
opscope import private.json -o private.opscope
stat -c '%a %n' private.opscope
chmod 644 private.json
opscope import private.json -o public.opscope
chmod 600 private.json
opscope import private.json -o public.opscope --force
stat -c '%a %n' public.opscope
