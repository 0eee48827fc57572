# One page that needs nothing from the network.
opscope report operators $TRACES/synthetic/self_time.json --format=html >page.html
grep -o '<title>[^<]*' page.html
grep -c 'aten::matmul' page.html
! grep -E 'src="?http|href="?http|@import|url\(http' page.html
