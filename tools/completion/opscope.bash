# Completion of opscope for bash. Written by tools/gen_completion.py from what the program says of itself.

# _opscope_options: by command, and by "report NAME" and "export FORMAT", its options as NAME:VALUE:WORDS. VALUE is 0 (takes none), 1 (takes one) or 2
# (may take one); WORDS are the values with | between, < for files. _opscope_first: what stands first behind a command, where that is no file.
declare -gA _opscope_options=(
@OPTIONS@
)
declare -gA _opscope_first=(
@FIRST@
)
_opscope_commands='@COMMANDS@'
_opscope_programs='@PROGRAMS@' # commands that are programs, too
_opscope_runners='@RUNNERS@' # commands behind whose options stands a program with its own

_opscope_has()
{
	[[ " $2 " == *" $1 "* ]]
}

# The row of an option, of a report or format before that of the command.
_opscope_row()
{
	local row
	REPLY=
	for row in ${_opscope_options["$command $first"]} ${_opscope_options[${command:-look}]}; do
		[[ $row == "$1":* ]] && REPLY=$row && return 0
	done
	return 1
}

# COMPREPLY: the words and files that a value may be; $3 stands in front of each, as far as readline does not keep it.
_opscope_value()
{
	local words=${1#*:*:} typed=$2 before=$3 word
	if [[ $words == *\|* && $typed == *,* ]]; then
		before+=${typed%,*},
		typed=${typed##*,}
	fi
	local IFS='|'
	for word in $words; do
		[[ $word != '<' && $word == "$typed"* ]] && COMPREPLY+=("$before$word")
	done
	[[ $words == *'<'* ]] && _opscope_files "$typed" "$before"
	return 0
}

_opscope_files()
{
	local path
	compopt -o filenames 2>/dev/null
	while IFS= read -r path; do
		COMPREPLY+=("$2$path")
	done < <(compgen -f -- "${1//\\/}")
}

_opscope_names()
{
	local row name all= IFS=$' \n'
	for row in ${_opscope_options["$command $first"]} ${_opscope_options[${command:-look}]}; do
		name=${row%%:*}
		_opscope_has "$name" "$all" && continue
		all+=" $name"
		[[ $name == "$cur"* ]] || continue
		[[ $row == --*:[12]:* ]] && COMPREPLY+=("$name=")
		[[ $row == --*:1:* ]] || COMPREPLY+=("$name")
	done
	[[ ! $command && --version == "$cur"* ]] && COMPREPLY+=(--version)
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}

# What another program takes, whose name is word $1 of the line.
_opscope_other()
{
	if (($1 < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif (($1 < COMP_CWORD)); then
		_opscope_files "$cur" ''
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	fi
}

_opscope()
{
	local words=() from=() i word cur command= first= taken= ended= n=0 REPLY
	COMPREPLY=()
	for ((i = 1; i <= COMP_CWORD; i++)); do # "--format=csv" comes in three words where "=" parts words
		word=${COMP_WORDS[i]}
		if ((${#words[@]})) && [[ ${words[-1]} == --?* ]] && [[ $word == = || ${words[-1]} == *= ]]; then
			words[-1]+=$word
		else
			words+=("$word")
			from+=("$i")
		fi
	done
	cur=${words[-1]}
	_opscope_has "${1##*/}" "$_opscope_programs" && command=${1##*/}
	for ((i = 0; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		if [[ $taken ]]; then
			taken=
		elif [[ ! $ended && $word == -- ]]; then
			ended=1
		elif [[ ! $ended && $word == -?* ]]; then
			_opscope_row "$word" && [[ $REPLY == *:1:* ]] && taken=$REPLY
		elif [[ ! $command ]]; then
			command=look
			_opscope_has "$word" "$_opscope_commands help" && command=$word
		elif _opscope_has "$command" "$_opscope_runners"; then
			_opscope_other "${from[i]}"
			return
		else
			((n++)) || first=$word
		fi
	done
	if [[ $taken ]]; then
		_opscope_value "$taken" "$cur" ''
	elif [[ ! $ended && $cur == --?*=* ]]; then
		_opscope_row "${cur%%=*}" && if [[ $COMP_WORDBREAKS == *=* ]]; then
			_opscope_value "$REPLY" "${cur#*=}" ''
		else
			_opscope_value "$REPLY" "${cur#*=}" "${cur%%=*}="
		fi
	elif [[ ! $ended && $cur == -* ]]; then
		_opscope_names
	elif [[ ! $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_opscope_commands help" -- "$cur")
		_opscope_files "$cur" ''
	elif _opscope_has "$command" "$_opscope_runners"; then
		_opscope_other "${from[i]}"
	elif ((n == 0)) && [[ ${_opscope_first[$command]} ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${_opscope_first[$command]}" -- "$cur")
	else
		_opscope_files "$cur" ''
	fi
	return 0
}

complete -F _opscope opscope @PROGRAMS@
