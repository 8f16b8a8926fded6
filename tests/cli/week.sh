#!/bin/sh
# Plays a week of a job: seven exports in the folder $1, one a day, with the command $2.
set -u
cd "$1" || exit 2
qms22=$2
json() { "$3" -c 'import json, sys; print(eval(sys.argv[2], {"r": json.load(open(sys.argv[1]))}))' "$1" "$2"; }
python=$3

expect() { # what it is, what it should be, what it says
    if [ "$1" != "$2" ]; then
        echo "day $number: $3 is $1, and should be $2" >&2
        cat "day-$number.log" >&2
        exit 1
    fi
}

search() {
    exec "$qms22" detect normal.csv "day-$number.csv" --id order --n-jobs 1 \
        --history orders.sqlite --accept \
        --fail-on anomalies,drift,volume,schema --max-share 5% \
        --json "day-$number.json" --good "good-$number.csv" --bad "bad-$number.csv" \
        >"day-$number.out" 2>"day-$number.log"
}

for number in 1 2 3 4 5 6 7; do
    # The first run of some days is killed: while it starts, searches, or writes and accepts.
    case $number in
    1 | 3 | 5)
        search &
        sleep "$(echo "$number 0.3" | awk '{ print $1 * $2 }')"
        kill -9 "$!" 2>/dev/null
        wait "$!" 2>/dev/null
        ;;
    esac
    (search)
    code=$?
    case $number in
    3) should=1 decision=fine rule=volume ;;
    4) should=1 decision=fine rule=schema ;;
    5) should=1 decision=drift rule=drift ;;
    6) should=1 decision=anomalies rule=anomalies ;;
    *) should=0 decision=fine rule=none ;;
    esac
    expect "$code" "$should" "the exit code"
    expect "$(json "day-$number.json" "r['verdict']['decision']" "$python")" "$decision" "the verdict"
    expect "$(json "day-$number.json" "([x['name'] for x in r['policy']['rules'] if not x['is_met']] or ['none'])[0]" "$python")" \
        "$rule" "the first broken rule"
    case $(tail -n 1 "day-$number.log") in
    "policy met: "*) expect "$should" 0 "the exit code of a policy that is met" ;;
    "policy violated by $rule"*) expect "$should" 1 "the exit code of a policy that is violated" ;;
    *) expect "$(tail -n 1 "day-$number.log")" "policy ..." "the last line" ;;
    esac
    # Each row is in one of the files, below a header.
    rows=$(($(wc -l <"good-$number.csv") + $(wc -l <"bad-$number.csv") - 2))
    expect "$rows" "$(($(wc -l <"day-$number.csv") - 1))" "the number of good and bad rows"
    expect "$(($(wc -l <"bad-$number.csv") - 1))" "$(json "day-$number.json" "r['counts']['flagged']" "$python")" \
        "the number of bad rows"
done

number=7
"$qms22" history orders.sqlite >history.csv 2>>day-7.log
expect "$(($(wc -l <history.csv) - 1))" 7 "the number of batches in the history"
expect "$("$python" -c 'import csv; print([int(x["batch"]) for x in csv.DictReader(open("history.csv")) if x["accepted"]])')" \
    "[1, 2, 7]" "what was accepted"
"$qms22" verify day-6.json normal.csv day-6.csv --history orders.sqlite --n-jobs 1 >>day-7.log 2>&1
expect "$?" 0 "the exit code of verify"
"$qms22" verify day-6.json normal.csv day-5.csv --history orders.sqlite --n-jobs 1 >>day-7.log 2>&1
expect "$?" 1 "the exit code of verify with another batch"
