# Wrong usage of record: one line on stderr, status 2; nothing is made.
for options in "" "--backend=other -- true" "--delay=soon -- true" "--duration=0 -- true" "--kill -- true" "--duration=1 --kill --range=a -- true" \
	"--range= -- true" "--steps=5..1 -- true" "--key-range=a -- true" "--range=a --steps=1..2 -- true" "--sample=gpu -- true" "--sample=cpu:0 -- true" \
	"--graph=all -- true" "--max-size=12 --max-size=1K -- true" "--max-size=1G,oldest -- true" "--max-size=1M -- true" \
	"--range=@ -- true" "--range=@domain -- true" "--steps=1 --key-range=@* -- true" "--env A -- true" "--nsys-options=-x -- true" "--nonsense -- true"; do
	opscope record $options || echo "status $?"
done
ls
