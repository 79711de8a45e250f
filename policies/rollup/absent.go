package rollup

import "github.com/flotilla-io/flotilla/policies/propagation"

// absent is that a template does not get to clusters that are not there. One that may yet join is
// waited for; a name that is nearly that of another cluster is a mistake.
func absent(p Part) finding {
	out := finding{Progressing, "", p.Object, propagation.Naming(p.Absent)}
	for _, s := range p.Absent {
		if s.Meant != "" {
			out.state = Failed
		}
	}
	return out
}

// Absent names the clusters that a placed template is meant for, too, and that are not there: those of the first one, and
// how many more there are; empty for none. Parts that are nil are none.
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
