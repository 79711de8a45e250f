package commandtest

import (
	"regexp"
	"strings"
)

// A Changing replaces one kind of text that differs from run to run by a fixed one for golden
// files. It matches whole words, because a random name may contain anything.
type Changing func(text string) string

// Steady replaces everything in a text that differs from run to run. The order of the kinds
// does not matter.
func Steady(text string, kinds ...Changing) string {
	for _, kind := range kinds {
		text = kind(text)
	}
	return text
}

// Texts that Kubernetes, Git and the system generate.
var (
	// UIDs are those of objects.
	UIDs = pattern(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "UID")
	// Commits are whole, or their first 8 characters behind sha1:.
	Commits = pattern(`\b[0-9a-f]{40}\b`, "COMMIT").and(pattern(`\bsha1:[0-9a-f]{8}\b`, "sha1:SHORT"))
	// Times are those of RFC 3339, in any zone.
	Times = pattern(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z\b|[+-]\d\d:\d\d\b)`, "TIME")
	// Ports are those of this machine.
	Ports = pattern(`(127\.0\.0\.1|\[::1\]|\blocalhost):\d+\b`, "$1:PORT")
	// Versions are those of Kubernetes.
	Versions = pattern(`\bv1\.\d+\.\d+\b`, "VERSION")
	// Created is what an Event adds if everything applied became healthy soon enough.
	Created = pattern(` \(\d+ created: [^()]*\)`, "")
	// Ages are how kubectl and Go write durations.
	Ages Changing = ages
	// Columns are as wide as their content. The beginning of a line stays, and so do the
	// lines of a tree.
	Columns = pattern(`([^\s│]) {2,}`, "$1  ")
)

// suffix matches the characters of Kubernetes' random names.
const suffix = `[bcdfghjklmnpqrstvwxz2456789]`

// Pods are the Pods and ReplicaSets of a workload, and its Works.
func Pods(workload string) Changing {
	// A hash is a number of up to ten digits, in letters of its own.
	once := pattern(`(^|[^a-z0-9.-])`+regexp.QuoteMeta(workload)+`-[bcdf4-9]{1,10}(-`+suffix+`{5})?($|[^a-z0-9.-])`, "${1}"+workload+"-HASH${3}")
	return once.and(once) // what is between two names belongs to the first
}

// Requests are for certificates, and have the name of a cluster.
func Requests() Changing { return pattern(`\b[a-z0-9.-]*[a-z0-9]-`+suffix+`{16}\b`, "REQUEST") }

func pattern(of, instead string) Changing {
	re := regexp.MustCompile(`(?m)` + of)
	return func(text string) string { return re.ReplaceAllString(text, instead) }
}

func (c Changing) and(other Changing) Changing {
	return func(text string) string { return other(c(text)) }
}

var (
	words = regexp.MustCompile(`[^\s(),;]+`)
	age   = regexp.MustCompile(`^(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?m?s)?$`)
)

func ages(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		bare := strings.TrimRight(word, ".:")
		if bare == "" || !age.MatchString(bare) {
			return word
		}
		return "AGE" + word[len(bare):]
	})
}
