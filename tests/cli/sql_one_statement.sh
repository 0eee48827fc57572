# Behind the one SELECT only semicolons, blanks and comments may stand.
for query in 'SELECT 1 AS a' 'SELECT 1 AS a ;; ' 'SELECT 1 AS a; -- one
 /* two */ ;' 'SELECT 1 AS a; DROP TABLE span' 'SELECT 1 AS a; garbage' 'SELECT 1 AS a;; /* */ garbage' 'SELECT 1 AS a; SELECT 2' ';' ; do
	echo "$query"
	opscope sql --format=csv $TRACES/synthetic/training_gpu.json "$query" 2>&1 || echo "status $?"
done
