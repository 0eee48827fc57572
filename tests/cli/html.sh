# One page that needs nothing from the network.
opscope report operators $TRACES/synthetic/self_time.json --format=html >page.html
grep -o '<title>[^<]*' page.html
grep -c 'aten::matmul' page.html
! grep -E 'src="?http|href="?http|@import|url\(http' page.html
# The head says which rows were asked for, the columns of detail wait behind a button.
opscope report steps $TRACES/synthetic/two_steps.json --steps=1..2 --filter 1 --limit=5 --format=html | grep -o '<code>--[^<]*'
opscope report devices $TRACES/synthetic/all_categories.json --format=html | grep -o '<button[^/]*'

# Findings are blocks of text, whose parts say what they are.
opscope advise $TRACES/synthetic/two_steps.json --format=html >advice.html
grep -o "<table class=prose>" advice.html
grep -o -m1 "data-t=.Evidence." advice.html | head -1
