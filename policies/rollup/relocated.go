package rollup

import (
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// relocated describes the last move of a template off clusters that are not heard of any more, which may run the old copy still:
// "off west (unreachable since 2026-01-02 15:04 UTC) to east". It is empty for none, and once it is placed there again.
func relocated(b workv1alpha2.Binding, silent Silences) string {
	record, _ := placement.RecordOf(b)
	if record.LastMove == nil || len(silent) == 0 {
		return ""
	}
	var off []string
	for _, cluster := range record.LastMove.From {
		s, is := silent[cluster]
		again := slices.ContainsFunc(plan.Targets(plan.SpecOf(b)), func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
		if is && !again {
			off = append(off, cluster+" ("+s.String()+")")
		}
	}
	if len(off) == 0 {
		return ""
	}
	text := "off " + strings.Join(off, ", ")
	if len(record.LastMove.To) > 0 {
		text += " to " + strings.Join(record.LastMove.To, ", ")
	}
	return text
}

// Moved describes the first move of a template off clusters that are not heard of, and how many others were moved; empty for none.
func Moved(parts []Part) string {
	var first *Part
	count := 0
	for i, p := range parts {
		if p.Moved == "" {
			continue
		}
		if count++; first == nil || p.Object < first.Object {
			first = &parts[i]
		}
	}
	if first == nil {
		return ""
	}
	return first.Object + more(count-1) + " moved " + first.Moved
}
