# SPDX-License-Identifier: GPL-2.0-only
#
# Make the bash completion of a program from its help, which the program prints of its own
# options and commands:
#
#   { PROGRAM --help; PROGRAM COMMAND --help; } | awk -v program=NAME -f completion.awk
#
# with the help of commands that have their own.
#
# Options are the lines that begin with one: "  -g, --gpu ADDRESS  text".  Values of an option
# are its alternatives (B|A|C), or the list that ends its text (": fea, drf or none").
# Commands are the lines "NAME COMMAND ...", with the bare words behind them as keywords.

# Add a word to the words of a key, once.
function add(words, key, word)
{
	if (index(" " words[key] " ", " " word " ") == 0)
		words[key] = words[key] (words[key] == "" ? "" : " ") word
}

# "exact, fea or none" as words; "" if it is no list of words.
function alternatives(text,	n, parts, i, list)
{
	sub(/ \(default .*\)$/, "", text)
	if (!sub(/^.*: /, "", text))
		return ""
	gsub(/, or |, | or /, ",", text)
	n = split(text, parts, ",")
	for (i = 1; i <= n; i++) {
		if (parts[i] !~ /^[a-z][a-z0-9-]*$/)
			return ""
		list = list (i > 1 ? " " : "") parts[i]
	}
	return n > 1 ? list : ""
}

# All options of a line, each with its placeholder, and the values of the last.
function take_options(line,	name, value, letter)
{
	letter = ""
	while (match(line, /^ *(-[a-zA-Z], )?--[a-z][a-z0-9-]*/)) {
		name = substr(line, 1, RLENGTH)
		line = substr(line, RLENGTH + 1)
		if (match(name, /-[a-zA-Z], /))
			letter = substr(name, RSTART, 2)
		sub(/^.*--/, "--", name)
		add(words, "options", name)
		value = ""
		if (match(line, /^ +[A-Z][^ ,]*/)) {
			value = substr(line, 1, RLENGTH)
			line = substr(line, RLENGTH + 1)
			gsub(/^ +/, "", value)
			if (!(name in valued))
				order[++nr_valued] = name
			valued[name] = value
			if (letter != "")
				short[name] = letter
			if (value ~ /^[A-Za-z]+\|/) {
				gsub(/\|/, " ", value)
				values[name] = value
			} else if ((value = alternatives(line)) != "") {
				values[name] = value
			} else if (program == "mgpu-place" && name == "--policy") {
				values[name] = "$(mgpu-place policies 2>/dev/null | awk '{ print $1 }')"
			}
		}
		if (!sub(/^, */, " ", line))
			break
	}
}

# "NAME load POLICY [dev DEV]": the command, and its keywords.
function take_command(line,	n, parts, i, command)
{
	sub(/^([uU]sage:)? */, "", line)
	sub(/^[^ ]+ */, "", line)
	gsub(/ \| /, " ", line)
	n = split(line, parts, " ")
	if (line ~ /^help /) {
		for (i = 1; i <= n && parts[i] ~ /^[a-z]+$/; i++)
			add(words, "commands", parts[i])
		return
	}
	if (parts[1] !~ /^[a-z]+$/)
		return
	command = parts[1]
	if (!(command in seen))
		names[++nr_commands] = command
	seen[command] = 1
	add(words, "commands", command)
	take_words(command, line)
}

# Bare words, also in brackets, and alternatives: "[dev DEV]", "train|evaluate".
function take_words(command, line,	n, parts, i, word)
{
	n = split(line, parts, " ")
	for (i = 1; i <= n; i++) {
		word = parts[i]
		gsub(/[][.]/, "", word)
		if (word == command || word !~ /^[a-z]+(\|[a-z]+)*$/)
			continue
		gsub(/\|/, " ", word)
		add(keywords, command, word)
	}
	if (line ~ / POLICY/)
		add(keywords, command, "$(" program " list 2>/dev/null | awk '{ print $1 }')")
	if (line ~ /VGPU/)
		add(keywords, command, "$(gpuctl vgpu list 2>/dev/null | awk 'NR > 1 { print $2 }')")
}

/^ *(-[a-zA-Z], )?--[a-z]/ { take_options($0) }

$0 ~ "^([uU]sage:|  ) *" program " +[a-z]" { take_command($0) }

END {
	name = program
	gsub(/-/, "_", name)
	print "# SPDX-License-Identifier: GPL-2.0-only"
	print "# bash completion for " program "; made from its help"
	print ""
	print "_" name "()"
	print "{"
	print "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}"
	print "\tlocal list= word command= before="
	print ""
	print "\tCOMPREPLY=()"
	print "\tcase $prev in"
	all = ""
	for (i = 1; i <= nr_valued; i++) {
		option = order[i]
		one = option (option in short ? " | " short[option] : "")
		all = all (i > 1 ? " | " : "") one
		printf "\t%s) ", one
		if (option in values)
			printf "list=\"%s\" ;;\n", values[option]
		else if (valued[option] == "ADDRESS")
			print "list=\"none $(lspci -Dn 2>/dev/null | awk '$2 ~ /^03/ { print $1 }')\" ;;"
		else
			print "return ;;	# " valued[option]
	}
	print "\tdev) list=\"$(gpuctl dev list 2>/dev/null | awk 'NR > 1 { print $1, $2 }')\" ;;"
	print "\t*)"
	print "\t\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do"
	if (all != "")
		print "\t\t\tcase $before in " all ") before= ; continue ;; esac"
	print "\t\t\tbefore=$word"
	print "\t\t\t[[ -n $command || $word == -* ]] || command=$word"
	print "\t\tdone"
	print "\t\tcase $command in"
	print "\t\t'') list='" words["commands"] "' ;;"
	for (i = 1; i <= nr_commands; i++)
		if (names[i] in keywords)
			print "\t\t" names[i] ") list=\"" keywords[names[i]] "\" ;;"
	print "\t\tesac"
	print "\t\t[[ $cur != -* ]] || list='" words["options"] "'"
	print "\t\t;;"
	print "\tesac"
	print "\tmapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$cur\")"
	print "}"
	print "complete -o default -F _" name " " program
}
