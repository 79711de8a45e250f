package merge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// lines merges three versions of a text; false where both sides have changed the same lines, or lines beside each other. It takes
// the lines that it compares from left.
func lines(base, ours, theirs []byte, left *int) ([]byte, bool) {
	switch {
	case bytes.Equal(base, ours):
		return theirs, true
	case bytes.Equal(base, theirs), bytes.Equal(ours, theirs):
		return ours, true
	case bytes.IndexByte(base, 0) >= 0 || bytes.IndexByte(ours, 0) >= 0 || bytes.IndexByte(theirs, 0) >= 0:
		return nil, false
	}
	o, a, b := split(base), split(ours), split(theirs)
	if *left -= len(o) + len(a) + len(b); *left < 0 {
		return nil, false
	}
	inOurs, inTheirs := matches(o, a), matches(o, b)
	var out []string
	for at, ai, bi := 0, 0, 0; ; {
		// The next line that all three have ends what was changed before it.
		next := at
		for next < len(o) && (inOurs[next] < ai || inTheirs[next] < bi) {
			next++
		}
		aNext, bNext := len(a), len(b)
		if next < len(o) {
			aNext, bNext = inOurs[next], inTheirs[next]
		}
		was, our, their := o[at:next], a[ai:aNext], b[bi:bNext]
		switch {
		case slices.Equal(was, our):
			out = append(out, their...)
		case slices.Equal(was, their), slices.Equal(our, their):
			out = append(out, our...)
		default:
			return nil, false
		}
		if next == len(o) {
			return []byte(strings.Join(out, "")), true
		}
		out = append(out, o[next])
		at, ai, bi = next+1, aNext+1, bNext+1
	}
}

// split returns the lines of a text, each with its end.
func split(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// matches returns where the lines of one text are in another one, in their order; -1 for those that are not.
func matches(of, in []string) []int {
	out := make([]int, len(of))
	for i := range out {
		out[i] = -1
	}
	head := 0
	for head < len(of) && head < len(in) && of[head] == in[head] {
		out[head] = head
		head++
	}
	tail := 0
	for tail < len(of)-head && tail < len(in)-head && of[len(of)-1-tail] == in[len(in)-1-tail] {
		tail++
		out[len(of)-tail] = len(in) - tail
	}
	matcher := difflib.NewMatcher(of[head:len(of)-tail], in[head:len(in)-tail])
	for _, block := range matcher.GetMatchingBlocks() {
		for i := range block.Size {
			out[head+block.A+i] = head + block.B + i
		}
	}
	return out
}
