package history

import (
	"fmt"
	"maps"
	"slices"
)

// acknowledged checks I1: the control plane holds what it accepted last, or what was
// asked for after that.
func (j *judge) acknowledged() []string {
	var out []string
	for _, object := range slices.Sorted(maps.Keys(j.writes)) {
		writes := j.writes[object]
		template, there := j.End.Hub[object]
		possible := false
		for _, w := range slices.Backward(writes) {
			possible = possible || (w.Deleted && !there) || (!w.Deleted && there && w.stands(template))
			if w.Acknowledged {
				break
			}
		}
		none := !slices.ContainsFunc(writes, func(w Write) bool { return w.Acknowledged })
		if !possible && !(none && !there) {
			out = append(out, fmt.Sprintf("%s stands at %s, which is not what was last written: %s", object, stand(template.Version, there), last(writes)))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(j.End.Hub)) {
		if len(j.writes[object]) == 0 {
			out = append(out, fmt.Sprintf("%s is there, and nobody wrote it", object))
		}
	}
	for _, policy := range slices.Sorted(maps.Keys(j.moves)) {
		if version, there := j.End.Policies[policy]; !there || !couldEndAt(j.moves[policy], version) {
			out = append(out, fmt.Sprintf("the policy %s stands at %s, which is not what was last written", policy, stand(version, there)))
		}
	}
	return out
}

// stands reports whether a template is what was written, all of it.
func (w Write) stands(t Template) bool {
	return t == Template{Version: w.Version, Replicas: w.Replicas, Digest: w.Digest}
}

// couldEndAt reports whether a version of a policy may be the last one.
func couldEndAt(moves []Move, version int) bool {
	for _, m := range slices.Backward(moves) {
		if m.Version == version {
			return true
		}
		if m.Acknowledged {
			return false
		}
	}
	return false
}

func stand(version int, there bool) string {
	if !there {
		return "nothing"
	}
	return fmt.Sprintf("version %d", version)
}

func last(writes []Write) string {
	w := writes[len(writes)-1]
	what := fmt.Sprintf("version %d", w.Version)
	if w.Deleted {
		what = "a deletion"
	}
	if !w.Acknowledged {
		what += ", without an answer"
	}
	return what
}
