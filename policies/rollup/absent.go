package rollup

import "github.com/flotilla-io/flotilla/policies/propagation"

// absent returns the finding for clusters that a template is meant for and that do not exist. A cluster that may
// yet join is waited for; a name that is nearly that of another cluster is a mistake, and so a failure.
func absent(p Part) finding {
	out := finding{Progressing, "", p.Object, propagation.Naming(p.Absent)}
	for _, s := range p.Absent {
		if s.Meant != "" {
			out.state = Failed
		}
	}
	return out
}

// Absent names the clusters that do not exist and that placed templates are meant for: those of the first template
// by name, and how many more templates there are; empty for none. Nil parts are skipped.
func Absent(parts []*Part) string {
	var first *Part
	count := 0
	for _, p := range parts {
		if p == nil || p.State != Healthy || len(p.Absent) == 0 {
			continue
		}
		if count++; first == nil || p.Object < first.Object {
			first = p
		}
	}
	if first == nil {
		return ""
	}
	return first.Object + more(count-1) + ": " + propagation.Naming(first.Absent)
}
