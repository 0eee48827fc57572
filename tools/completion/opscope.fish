# Completion of opscope for fish. Written by tools/gen_completion.py from what the program says of itself.

# Whether the first word behind the program is this command, and with a number how many words stand behind that.
function __opscope_in --argument-names command behind
    set --local words (commandline --tokenize --cut-at-cursor --current-process)
    test "$words[2]" = "$command"; or return 1
    set --query behind[1]; and test -n "$behind"; or return 0
    test (count (string match --invert -- '-*' $words[3..-1])) -eq "$behind"
end

function __opscope_asks --argument-names command name
    set --local words (commandline --tokenize --cut-at-cursor --current-process)
    test "$words[2]" = "$command"; and contains -- "$name" $words[3..-1]
end

@LINES@
