// Package trailer reads in the message of a commit what it allows to be deleted.
//
// In goes the message, which anybody may have written; out come the names in its trailers, bounded. Whether these are
// names of anything is for others to find out.
package trailer

import (
	"regexp"
	"slices"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// most is how much of the names is returned, in bytes.
const most = 4 << 10

var (
	ends = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	// blank matches what is between paragraphs: Git does not mind blanks there, which forges and editors leave.
	// The indentation of the next line is that of a block of code, and remains.
	blank = regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)*\n`)
	// folded matches the end of a line that goes on in the next one, which begins with a blank.
	folded = regexp.MustCompile(`[ \t]*\n[ \t]+`)
	// plain matches a line that is some trailer.
	plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*[ \t]*:`)
	// made matches a line that Git itself adds: beside one, a paragraph may have a few words that are no trailers.
	made = regexp.MustCompile(`^(?:Signed-off-by: |\(cherry picked from commit )`)
)

// Allowed returns the objects that a commit's trailers allow to be deleted, separated by commas, each once. Trailers are
// in the last paragraph of the message, which must not be the first, if Git takes it for trailers, and in those right before it of which
// each line is a trailer: what merges a commit may add a paragraph of its own. What a trailer elsewhere names is among them with gitopsv1alpha1.NotAllowed before it. Names
// that do not fit are left out whole.
func Allowed(message string) string {
	paragraphs := blank.Split(strings.TrimSpace(ends.Replace(message)), -1)
	last := len(paragraphs) - 1
	first := last
	for first > 1 && onlyTrailers(paragraphs[first]) && onlyTrailers(paragraphs[first-1]) {
		first--
	}
	var names []string
	size := 0
	add := func(name string) {
		if slices.Contains(names, name) || slices.Contains(names, strings.TrimPrefix(name, gitopsv1alpha1.NotAllowed)) {
			return
		}
		if size += len(name) + len(", "); size <= most {
			names = append(names, name)
		}
	}
	for i := last; i >= 0; i-- {
		for _, name := range namesIn(paragraphs[i]) {
			if i == 0 || i < first || !areTrailers(paragraphs[i]) {
				name = gitopsv1alpha1.NotAllowed + name
			}
			add(name)
		}
	}
	return strings.Join(names, ", ")
}

// areTrailers reports whether Git takes a paragraph for trailers: each line is one, or Git has added one and a quarter are.
func areTrailers(paragraph string) bool {
	trailers, others, gits := 0, 0, false
	for _, line := range lines(paragraph) {
		switch {
		case made.MatchString(line):
			trailers, gits = trailers+1, true
		case plain.MatchString(line):
			trailers++
		default:
			others++
		}
	}
	return others == 0 || gits && trailers*3 >= others
}

// onlyTrailers reports whether each line of a paragraph is a trailer.
func onlyTrailers(paragraph string) bool {
	return !slices.ContainsFunc(lines(paragraph), func(line string) bool { return !plain.MatchString(line) })
}

// lines are those of a paragraph; one that goes on in the next counts as one.
func lines(paragraph string) []string {
	return strings.Split(folded.ReplaceAllString(paragraph, " "), "\n")
}

// namesIn returns what the trailers in a paragraph name.
func namesIn(paragraph string) []string {
	var out []string
	for _, line := range lines(paragraph) {
		key, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(key), gitopsv1alpha1.AllowDeleteTrailer) {
			continue
		}
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimLeft(excerpt.Line(name), gitopsv1alpha1.NotAllowed); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
